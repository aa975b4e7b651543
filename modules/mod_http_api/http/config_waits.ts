/**
 * The header X-Modhost-Config-Waits lists the configuration keys that are written but not in force.
 */
import type { WaitingKey } from "modhost/node";

/**
 * Formats a list of structured fields (RFC 9651): `Routing.Type, Addresses.Swarm;reason="..."`. A
 * key without a reason takes effect at the next start.
 */
export function pendingKeysHeader(keys: readonly WaitingKey[]): string {
  return keys.map(({ key, reason }) => (reason === undefined ? key : `${key};reason=${textOf(reason)}`)).join(", ");
}

/** Longer reasons are cut, because headers are limited in size. */
const MAX_REASON_LENGTH = 300;

const textOf = (reason: string): string =>
  `"${reason
    .slice(0, MAX_REASON_LENGTH)
    .replace(/[^ -~]/g, "?")
    .replace(/["\\]/g, "\\$&")}"`;
