/** Checksums of bytes that were right, by their position on the disk. */
import { createCipheriv, createSecretKey, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { CID } from "multiformats/cid";
import { type Position, segmentAt } from "./format.ts";

/** Number of positions that are remembered; each takes 12 bytes. */
const SLOT_BITS = 16;
const SLOTS = 2 ** SLOT_BITS;
/**
 * Number of adjacent slots in which a position may be. With 10,000 positions that are read in turn,
 * almost none then evicts another one.
 */
const WAYS = 4;

/** A table of checksums. A new position evicts the oldest one in its slots. */
export class PositionChecksums {
  readonly #positions = new Float64Array(SLOTS);
  readonly #sums = new Uint32Array(SLOTS);

  /** Returns the checksum of a position; undefined when it is not remembered. */
  get(position: Position): number | undefined {
    const slot = this.#find(position);
    return slot === undefined ? undefined : this.#sums[slot];
  }

  set(position: Position, sum: number): void {
    const slot = this.#find(position) ?? this.#freed(firstSlotOf(position));
    this.#positions[slot] = position;
    this.#sums[slot] = sum;
  }

  #find(position: Position): number | undefined {
    const first = firstSlotOf(position);
    for (let slot = first; slot < first + WAYS; slot += 1) if (this.#positions[slot] === position) return slot;
    return undefined;
  }

  /** Frees the first slot of a group by moving the others on by one. */
  #freed(first: number): number {
    this.#positions.copyWithin(first + 1, first, first + WAYS - 1);
    this.#sums.copyWithin(first + 1, first, first + WAYS - 1);
    return first;
  }
}

/** Spreads positions at equal distances, too (the last step of MurmurHash3). */
function firstSlotOf(position: Position): number {
  let mixed = (position ^ segmentAt(position)) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> (32 - SLOT_BITS)) & -WAYS;
}

/**
 * Computes a checksum of the bytes of a block and its hash, so that right bytes are not accepted
 * for another CID. Never returns 0.
 */
export function checksumOf({ multihash }: CID, bytes: Uint8Array): number {
  const sum =
    bytes.length < MIN_AUTHENTICATED_BYTES
      ? crc32(bytes, crc32(multihash.bytes))
      : authenticated(multihash.bytes, bytes);
  return sum || 1;
}

/**
 * From this length on, a cipher is faster. It takes longer to start and half as long per byte on
 * processors with carry-less multiplication, which includes every x64.
 */
const MIN_AUTHENTICATED_BYTES = process.arch === "x64" ? 32 * 1024 : Number.POSITIVE_INFINITY;
const CIPHER = "aes-128-gcm";
/**
 * The key is random, because checksums are only compared in this process. One initialization vector
 * is enough, because nothing is encrypted.
 */
const key = createSecretKey(randomBytes(16));
const vector = new Uint8Array(12);

/** Returns the first bytes of an authentication tag of both arrays (GMAC, NIST SP 800-38D). */
function authenticated(one: Uint8Array, other: Uint8Array): number {
  const cipher = createCipheriv(CIPHER, key, vector).setAAD(one).setAAD(other);
  cipher.final();
  return cipher.getAuthTag().readUInt32LE();
}
