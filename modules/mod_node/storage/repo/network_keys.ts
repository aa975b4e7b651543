/** Keys of the network that version 0.9 does not have. */
import { key } from "./config_key.ts";
import { count, flag, optionalDuration, optionalText } from "./value_kinds.ts";
import { texts } from "./value_structs.ts";

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
  "Swarm.RelayService.ConnectionDurationLimit": key(
    "live",
    optionalDuration,
    undefined,
    "After which a connection is cut that this node relays; null is 2m where its data are limited, otherwise any time.",
  ),
  "Swarm.RelayService.ConnectionDataLimit": key(
    "live",
    count,
    undefined,
    "Bytes in each direction after which such a connection is cut; null is 131072 where its time is limited, otherwise any number.",
  ),
  "Swarm.RelayService.ReservationTTL": key(
    "live",
    optionalDuration,
    undefined,
    "For how long a peer may be reached through this node before it asks again; null is 1h. With a change all ask anew.",
  ),
  "Swarm.RelayService.MaxReservations": key(
    "live",
    count,
    undefined,
    "Peers that may be reached through this node at a time; null is 128.",
  ),
  "Routing.IgnoreProviders": key(
    "live",
    texts,
    undefined,
    "Ids of peers that are never named as providers of a block, whoever says it.",
  ),
  "Bitswap.Libp2pEnabled": key(
    "start",
    flag,
    undefined,
    "False: blocks are neither fetched from peers nor served to them by bitswap; they come from gateways (`HTTPRetrieval`) alone.",
  ),
  "Bitswap.ServerEnabled": key(
    "live",
    flag,
    undefined,
    "False: peers that ask by bitswap are told that nothing is here.",
  ),
  "Pubsub.SeenMessagesTTL": key(
    "start",
    optionalDuration,
    undefined,
    "For how long a message is known as seen, since it first came; null is 2m.",
  ),
  "Version.AgentSuffix": key(
    "start",
    optionalText,
    undefined,
    "Text that is appended to what the node calls itself to peers; other characters than printable ASCII become `_`, and all of it has at most 128.",
  ),
} as const;
