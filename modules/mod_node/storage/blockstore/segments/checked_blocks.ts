/** Blocks on the disk that were found to be those of their CIDs: the next reads of them are checked by a sum, which costs a third. */
import { createCipheriv, createSecretKey, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { CID } from "multiformats/cid";
import { matches } from "../../../formats/cid/hashes.ts";
import { type BytesLocation, type Position, positionAt } from "./format.ts";

/** Blocks that are remembered, 12 bytes for each. */
const SLOT_BITS = 16;
const SLOTS = 2 ** SLOT_BITS;
/** It was read once. */
const NO_SUM = 0;

/** By location, whose bytes never change. Whatever the sum says, what is refused is refused by the hash. */
export class CheckedBlocks {
  /** Each has one slot that it may be in; whoever comes last is. */
  readonly #positions = new Float64Array(SLOTS);
  readonly #sums = new Uint32Array(SLOTS);

  /** A block was read there, and found right. */
  has({ segment, offset }: BytesLocation): boolean {
    return this.#positions[slotOf(segment, offset)] === positionAt(segment, offset);
  }

  /** The next read of it is checked by a sum. */
  isSummed(location: BytesLocation): boolean {
    return this.has(location) && this.#sums[slotOf(location.segment, location.offset)] !== NO_SUM;
  }

  /** Whether the sum says so: where it does not, `check` does. */
  fits(cid: CID, location: BytesLocation, bytes: Uint8Array): boolean {
    return this.isSummed(location) && this.#sums[slotOf(location.segment, location.offset)] === sumOf(cid, bytes);
  }

  /** Whether `bytes`, which were read at `location`, are those of the CID. */
  check(cid: CID, location: BytesLocation, bytes: Uint8Array): boolean | Promise<boolean> {
    const { segment, offset } = location;
    const position = positionAt(segment, offset);
    const slot = slotOf(segment, offset);
    // Most blocks are read once: the sum is made when one is read again.
    const sum = this.#positions[slot] === position ? sumOf(cid, bytes) : NO_SUM;
    return (sum !== NO_SUM && this.#sums[slot] === sum) || this.#hash(cid, bytes, { position, slot, sum });
  }

  async #hash(cid: CID, bytes: Uint8Array, { position, slot, sum }: Remembered): Promise<boolean> {
    const fits = await matches(cid, bytes, "here");
    if (fits) {
      this.#positions[slot] = position;
      this.#sums[slot] = sum;
    }
    return fits;
  }
}

interface Remembered {
  readonly position: Position;
  readonly slot: number;
  readonly sum: number;
}

/** Of the block and its hash, so that right bytes are not taken for those of another CID. */
function sumOf({ multihash }: CID, bytes: Uint8Array): number {
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

const slotOf = (segment: number, offset: number): number =>
  Math.imul(offset + segment, 0x9e3779b1) >>> (32 - SLOT_BITS);
