/**
 * The twelve bits of a file mode that UnixFS stores: the permissions, and above them set-user-ID,
 * set-group-ID and sticky.
 */

const BITS = 0o7777;

/**
 * Converts a file mode in Go's representation, which clients of go-ipfs send, to these bits. In Go,
 * set-user-ID and set-group-ID are bits 23 and 22, and sticky is bit 20. Returns undefined if no
 * bit is set.
 */
export const unixMode = (goMode: number): number | undefined =>
  ((goMode >>> 12) & 0o6000) | ((goMode >>> 11) & 0o1000) | (goMode & 0o777) || undefined;

/**
 * Replaces the twelve bits in the mode of a node, as Kubo does. Higher bits stay. If no bit is
 * left, the node has no mode.
 */
export const withBits = (before: number | undefined, bits: number | undefined): number | undefined =>
  (((before ?? 0) & ~BITS) | (bits ?? 0)) >>> 0 || undefined;
