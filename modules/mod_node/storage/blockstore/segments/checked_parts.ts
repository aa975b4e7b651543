/**
 * Remembers parts of large blocks on the disk that were right, so that a reader of a few bytes
 * reads and checks only these parts.
 */
import type { CID } from "multiformats/cid";
import type { Span } from "../store.ts";
import { type BytesLocation, positionAt } from "./format.ts";
import { checksumOf, PositionChecksums } from "./position_checksums.ts";

/** Length of a part; the last part of a block may be shorter. */
export const PART_BYTES = 64 * 1024;

/** Returns the range of whole parts of a block of `length` bytes that contain the span. */
export function partsAround({ from, to }: Span, length: number): Span {
  const end = Math.min(to, length);
  return { from: from - (from % PART_BYTES), to: Math.min(length, Math.ceil(end / PART_BYTES) * PART_BYTES) };
}

/**
 * Checksums of parts by location; the bytes at a location never change. Spans are those of
 * `partsAround`.
 */
export class CheckedParts {
  readonly #sums = new PositionChecksums();

  /** Whether all parts of the span have a checksum. */
  has({ segment, offset }: BytesLocation, { from, to }: Span): boolean {
    for (let at = from; at < to; at += PART_BYTES) {
      if (this.#sums.get(positionAt(segment, offset + at)) === undefined) return false;
    }
    return true;
  }

  /** Remembers the parts of a block that was read at `location` and was right. */
  add(cid: CID, { segment, offset }: BytesLocation, block: Uint8Array): void {
    for (let at = 0; at < block.length; at += PART_BYTES) {
      this.#sums.set(positionAt(segment, offset + at), checksumOf(cid, block.subarray(at, at + PART_BYTES)));
    }
  }

  /**
   * Whether `bytes`, which were read at `from` in the block at `location`, match the remembered
   * parts.
   */
  fit(cid: CID, { segment, offset }: BytesLocation, from: number, bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; at += PART_BYTES) {
      const known = this.#sums.get(positionAt(segment, offset + from + at));
      if (known === undefined || known !== checksumOf(cid, bytes.subarray(at, at + PART_BYTES))) return false;
    }
    return true;
  }
}
