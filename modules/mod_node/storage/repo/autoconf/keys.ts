/** Keys that configure the value `auto`. */
import { key } from "../config_key.ts";
import { flag, optionalDuration, optionalText } from "../value_kinds.ts";

export const autoConfKeys = {
  "AutoConf.Enabled": key(
    "live",
    flag,
    undefined,
    "False: `auto` cannot be added to the bootstrap list and means no peers there; elsewhere it means the built-in values. A list with only `auto` keeps the node from going online.",
  ),
  "AutoConf.URL": key(
    "live",
    optionalText,
    undefined,
    "URL of the document that defines the value `auto`. It is fetched while the node is online and `Bootstrap`, `DNS.Resolvers`, `Routing.DelegatedRouters` or `Ipns.DelegatedPublishers` contains `auto`. Empty is the document of the public network, `https://conf.ipfs-mainnet.org/autoconf.json`. Until a response arrives, the last fetched document applies, or else the built-in values.",
  ),
  "AutoConf.RefreshInterval": key(
    "live",
    optionalDuration,
    undefined,
    "How often the document is fetched again; null is 24h. The server may request a shorter interval.",
  ),
  "AutoConf.TLSInsecureSkipVerify": key(
    "live",
    flag,
    undefined,
    "True: the certificate of the server is not verified. For tests only.",
  ),
} as const;
