/** Keys of the network that version 0.9 does not have. */
import { key } from "./config_key.ts";
import { flag, optionalDuration, optionalText } from "./value_kinds.ts";

export const networkKeys = {
  "Ipns.MaxCacheTTL": key(
    "live",
    optionalDuration,
    undefined,
    "For how long a resolved name is remembered at most, whatever its record says; `0` is not at all, null is no bound.",
  ),
  "Swarm.EnableHolePunching": key(
    "live",
    flag,
    undefined,
    "Connect directly to peers that are reached through a relay; null is true. Only while relays are used.",
  ),
  "Version.AgentSuffix": key(
    "start",
    optionalText,
    undefined,
    "Text that is appended to what the node calls itself to peers; other characters than printable ASCII become `_`, and all of it has at most 128.",
  ),
} as const;
