/** Keys of what the word `auto` stands for. */
import { key } from "../config_key.ts";
import { flag, optionalDuration, optionalText } from "../value_kinds.ts";

export const autoConfKeys = {
  "AutoConf.Enabled": key(
    "live",
    flag,
    undefined,
    "False: `auto` cannot be added to the bootstrap list, and stands for what is built in where it is written.",
  ),
  "AutoConf.URL": key(
    "live",
    optionalText,
    undefined,
    "Where it is looked up what the word `auto` stands for, while that word is in `Bootstrap`, `DNS.Resolvers`, `Routing.DelegatedRouters` or `Ipns.DelegatedPublishers` and the node is online; empty is that of the public network, `https://conf.ipfs-mainnet.org/autoconf.json`. Until an answer has come what was last fetched counts, and before that what is built in.",
  ),
  "AutoConf.RefreshInterval": key(
    "live",
    optionalDuration,
    undefined,
    "How often it is looked up again; null is 24h. Sooner where the server says so.",
  ),
  "AutoConf.TLSInsecureSkipVerify": key(
    "live",
    flag,
    undefined,
    "True: its certificate is not looked at. For tests only.",
  ),
} as const;
