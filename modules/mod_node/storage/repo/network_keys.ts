/** Configuration keys of the network that version 0.9 does not have. */
import { key } from "./config_key.ts";
import { count, flag, optionalDuration, optionalText } from "./value_kinds.ts";
import { texts } from "./value_structs.ts";

export const networkKeys = {
  "Ipns.MaxCacheTTL": key(
    "live",
    optionalDuration,
    undefined,
    "Maximum time for which a resolved name is cached, whatever its record says; `0` disables caching, null is no limit.",
  ),
  "Swarm.EnableHolePunching": key(
    "live",
    flag,
    undefined,
    "Connect directly to peers that are reached through a relay; null is true. Only while relays are used.",
  ),
  "Swarm.RelayService.ConnectionDurationLimit": key(
    "live",
    optionalDuration,
    undefined,
    "Duration after which this node closes a relayed connection; null is 2m when its data are limited, and otherwise no limit.",
  ),
  "Swarm.RelayService.ConnectionDataLimit": key(
    "live",
    count,
    undefined,
    "Bytes in each direction after which this node closes a relayed connection; null is 131072 when its duration is limited, and otherwise no limit.",
  ),
  "Swarm.RelayService.ReservationTTL": key(
    "live",
    optionalDuration,
    undefined,
    "How long a peer is reachable through this node before it must renew its reservation; null is 1h. After a change, all peers must renew.",
  ),
  "Swarm.RelayService.MaxReservations": key(
    "live",
    count,
    undefined,
    "Maximum number of peers that are reachable through this node at a time; null is 128.",
  ),
  "Routing.IgnoreProviders": key(
    "live",
    texts,
    undefined,
    "Ids of peers that are never used as providers of a block, whoever names them.",
  ),
  "Bitswap.Libp2pEnabled": key(
    "start",
    flag,
    undefined,
    "False: blocks are neither fetched from peers nor served to them by bitswap; they only come from gateways (`HTTPRetrieval`).",
  ),
  "Bitswap.ServerEnabled": key(
    "live",
    flag,
    undefined,
    "False: the node responds to bitswap requests of peers as if it had no blocks.",
  ),
  "Pubsub.SeenMessagesTTL": key(
    "start",
    optionalDuration,
    undefined,
    "How long a message counts as seen after its first arrival; null is 2m.",
  ),
  "Version.AgentSuffix": key(
    "start",
    optionalText,
    undefined,
    "Text that is appended to the agent version that peers see. Characters outside printable ASCII become `_`, and the whole version has at most 128 characters.",
  ),
} as const;
