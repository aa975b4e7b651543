/** Sums of bytes that were found to be right, by where they are on the disk. */
import { createCipheriv, createSecretKey, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { CID } from "multiformats/cid";
import { type Position, segmentAt } from "./format.ts";

/** Places that are remembered, 12 bytes for each. */
const SLOT_BITS = 16;
const SLOTS = 2 ** SLOT_BITS;
/** Slots that a place may be in, side by side: of 10,000 places that are read in turn, nearly none then drives another out. */
const WAYS = 4;

/** Whoever comes last drives out the one that came first, of those that share its slots. */
export class PlaceSums {
  readonly #positions = new Float64Array(SLOTS);
  readonly #sums = new Uint32Array(SLOTS);

  /** Undefined for a place that is not remembered. */
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

  /** The first of some slots, whose places move on by one. */
  #freed(first: number): number {
    this.#positions.copyWithin(first + 1, first, first + WAYS - 1);
    this.#sums.copyWithin(first + 1, first, first + WAYS - 1);
    return first;
  }
}

/** Places that are equally far from each other are spread as well (the last step of MurmurHash3). */
function firstSlotOf(position: Position): number {
  let mixed = (position ^ segmentAt(position)) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> (32 - SLOT_BITS)) & -WAYS;
}

/** Of bytes of a block and its hash, so that right bytes are not taken for those of another CID. Never 0. */
export function sumOf({ multihash }: CID, bytes: Uint8Array): number {
  const sum =
    bytes.length < MIN_AUTHENTICATED_BYTES
      ? crc32(bytes, crc32(multihash.bytes))
      : authenticated(multihash.bytes, bytes);
  return sum || 1;
}

/** A cipher takes longer to begin, and half as long for each byte where the processor multiplies without carry: every x64 does. */
const MIN_AUTHENTICATED_BYTES = process.arch === "x64" ? 32 * 1024 : Number.POSITIVE_INFINITY;
const CIPHER = "aes-128-gcm";
/** Sums are compared in this process alone. Nothing is encrypted, so that one vector does for all. */
const key = createSecretKey(randomBytes(16));
const vector = new Uint8Array(12);

/** The first bytes of a tag that stands for both (GMAC, NIST SP 800-38D). */
function authenticated(one: Uint8Array, other: Uint8Array): number {
  const cipher = createCipheriv(CIPHER, key, vector).setAAD(one).setAAD(other);
  cipher.final();
  return cipher.getAuthTag().readUInt32LE();
}
