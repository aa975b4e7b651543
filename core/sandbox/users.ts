/** The user of a sandboxed module, where the server runs as root. */
import { createHash } from "node:crypto";

/**
 * The first of 2^28 user ids that systemd leaves unused, from 1879048192 to 2147483647. None of
 * them needs to exist in /etc/passwd.
 */
export const FIRST_USER = 0x70000000;
const MASK = 0x0fffffff;

/** Returns the id of a module's own user and group, always the same for one name. */
export function userOf(name: string): number {
  return FIRST_USER + (createHash("sha256").update(name).digest().readUInt32LE(0) & MASK);
}
