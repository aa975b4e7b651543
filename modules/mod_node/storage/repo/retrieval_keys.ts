/** The keys of the configuration that say how blocks are fetched over HTTP. */
import { key } from "./config_key.ts";
import { count, flag, sizeText } from "./value_kinds.ts";
import { texts } from "./value_structs.ts";

export const retrievalKeys = {
  "HTTPRetrieval.Enabled": key(
    "live",
    flag,
    undefined,
    "Fetch blocks over HTTP as well, from gateways that the routing system names as providers; null is true.",
  ),
  "HTTPRetrieval.Allowlist": key(
    "live",
    texts,
    undefined,
    "Hosts of gateways; where there are any, only these are used, also at private addresses.",
  ),
  "HTTPRetrieval.Denylist": key("live", texts, undefined, "Hosts that are never asked for blocks over HTTP."),
  "HTTPRetrieval.NumWorkers": key(
    "live",
    count,
    undefined,
    "Requests for blocks over HTTP at a time; null and 0 are 16.",
  ),
  "HTTPRetrieval.MaxBlockSize": key(
    "live",
    sizeText,
    undefined,
    "Size of the largest block that is taken over HTTP; empty is 2MiB.",
  ),
  "HTTPRetrieval.TLSInsecureSkipVerify": key(
    "live",
    flag,
    undefined,
    "True: certificates of gateways are not checked. For tests.",
  ),
} as const;
