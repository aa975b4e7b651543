/**
 * The twelve bits of a file mode that UnixFS stores: permissions, and above them set-user-ID,
 * set-group-ID and sticky.
 */

const BITS = 0o7777;

/**
 * The bits in a file mode as Go has it, which is what clients of the reference send: set-user-ID
 * and set-group-ID are its bits 23 and 22, sticky is bit 20. Undefined for none.
 */
export const unixMode = (goMode: number): number | undefined =>
  ((goMode >>> 12) & 0o6000) | ((goMode >>> 11) & 0o1000) | (goMode & 0o777) || undefined;

/**
 * The mode of a node with other bits, as Kubo stores it: what is above the twelve bits stays, and
 * without any bit there is no mode.
 */
export const withBits = (before: number | undefined, bits: number | undefined): number | undefined =>
  (((before ?? 0) & ~BITS) | (bits ?? 0)) >>> 0 || undefined;
