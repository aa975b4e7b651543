/** The key space of Kademlia: SHA-256 of multihashes and peer ids, and prefixes of such keys. */
import { hash } from "node:crypto";

/**
 * The first bits of keys, as a text of `0` and `1`; stands for all keys that begin with them. The
 * empty text stands for all keys.
 */
export type Prefix = string;

/** Anything that has a key in the key space. */
export interface HasKadId {
  /** The key: 32 bytes. */
  readonly kadId: Uint8Array;
}

export const kadIdOf = (bytes: Uint8Array): Uint8Array => hash("sha256", bytes, "buffer");

export const bitOf = (kadId: Uint8Array, at: number): 0 | 1 =>
  (((kadId[at >> 3] as number) >> (7 - (at & 7))) & 1) as 0 | 1;

export function prefixOf(kadId: Uint8Array, length: number): Prefix {
  let prefix = "";
  for (let at = 0; at < length; at += 1) prefix += bitOf(kadId, at);
  return prefix;
}

export function isWithin({ kadId }: HasKadId, prefix: Prefix): boolean {
  for (let at = 0; at < prefix.length; at += 1) if (bitOf(kadId, at) !== Number(prefix[at])) return false;
  return true;
}

/** Returns the other half of the next shorter prefix. The empty prefix has no sibling. */
export const siblingOf = (prefix: Prefix): Prefix => prefix.slice(0, -1) + (prefix.endsWith("0") ? "1" : "0");

export const parentOf = (prefix: Prefix): Prefix => prefix.slice(0, -1);

/** Returns the start of a region in the key space, from 0 to below 1. */
export const positionOf = (prefix: Prefix): number =>
  prefix === "" ? 0 : Number.parseInt(prefix, 2) / 2 ** prefix.length;

/** Returns all prefixes of that length that extend the given prefix. */
export function prefixesBelow(prefix: Prefix, length: number): readonly Prefix[] {
  const rest = length - prefix.length;
  if (rest <= 0) return [prefix];
  return Array.from({ length: 2 ** rest }, (_, at) => prefix + at.toString(2).padStart(rest, "0"));
}

/**
 * Number of leading bits for which the table remembers a multihash: for each value of them the
 * first one that was found.
 */
const TABLE_BITS = 12;
/**
 * Maximum number of leading bits of lookup keys, and so of regions. On average, one of 16,384
 * hashes has a given 14-bit prefix, and finding it takes a few milliseconds. So many regions
 * suffice for half a million peers; peers that fake a larger network do not create more regions.
 */
export const MAX_LOOKUP_BITS = 14;

/**
 * Finds lookup keys. Peers hash the key that they are queried with, so a key with a given prefix
 * can only be found by trial.
 */
export class Lookups {
  /**
   * For each value of the leading bits, the number of the found multihash plus one; 0 if none was
   * found.
   */
  readonly #found = new Uint32Array(2 ** TABLE_BITS);
  #tried = 0;

  /**
   * Returns a SHA-256 multihash whose key begins with the prefix, which has at most
   * `MAX_LOOKUP_BITS` bits.
   */
  keyIn(prefix: Prefix): Uint8Array {
    const rest = TABLE_BITS - prefix.length;
    const first = rest >= 0 ? Number.parseInt(prefix || "0", 2) * 2 ** rest : undefined;
    for (let at = 0; first !== undefined && at < 2 ** rest; at += 1) {
      const number = this.#found[first + at] as number;
      if (number !== 0) return multihash(number - 1);
    }
    for (let number = first === undefined ? 0 : this.#tried; ; number += 1) {
      const key = multihash(number);
      const kadId = kadIdOf(key);
      if (number === this.#tried) this.#note(kadId);
      if (isWithin({ kadId }, prefix)) return key;
    }
  }

  #note(kadId: Uint8Array): void {
    const at = ((kadId[0] as number) << 4) | ((kadId[1] as number) >> 4);
    this.#tried += 1;
    if (this.#found[at] === 0) this.#found[at] = this.#tried;
  }
}

function multihash(number: number): Uint8Array {
  const bytes = Buffer.alloc(34);
  bytes[0] = 0x12;
  bytes[1] = 32;
  bytes.writeUInt32BE(number, 30);
  return bytes;
}
