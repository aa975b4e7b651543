/** The header X-Modhost-Config-Waits: what of the node's configuration is written and not in force. */
import type { WaitingKey } from "modhost/node";

/**
 * A list of structured fields (RFC 9651): `Routing.Type, Addresses.Swarm;reason="..."`. Without a reason a key waits for
 * the next start.
 */
export function waitingList(keys: readonly WaitingKey[]): string {
  return keys.map(({ key, reason }) => (reason === undefined ? key : `${key};reason=${textOf(reason)}`)).join(", ");
}

/** Longer reasons are cut: a header has little room. */
const MAX_REASON_LENGTH = 300;

const textOf = (reason: string): string =>
  `"${reason
    .slice(0, MAX_REASON_LENGTH)
    .replace(/[^ -~]/g, "?")
    .replace(/["\\]/g, "\\$&")}"`;
