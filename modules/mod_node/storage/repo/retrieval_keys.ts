/** The configuration keys for fetching blocks over HTTP. */
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
    "Hosts of gateways. If any are listed, only these are used, even at private addresses.",
  ),
  "HTTPRetrieval.Denylist": key("live", texts, undefined, "Hosts that are never asked for blocks over HTTP."),
  "HTTPRetrieval.NumWorkers": key(
    "live",
    count,
    undefined,
    "Maximum number of concurrent HTTP requests for blocks; null and 0 are 16.",
  ),
  "HTTPRetrieval.MaxBlockSize": key(
    "live",
    sizeText,
    undefined,
    "Maximum size of a block that is fetched over HTTP; empty is 2MiB.",
  ),
  "HTTPRetrieval.TLSInsecureSkipVerify": key(
    "live",
    flag,
    undefined,
    "True: certificates of gateways are not verified. For tests only.",
  ),
} as const;
