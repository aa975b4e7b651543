/** Parts of large blocks on the disk that were found right: who wants a few bytes of such a block reads and checks no others. */
import type { CID } from "multiformats/cid";
import type { Span } from "../store.ts";
import { type BytesLocation, positionAt } from "./format.ts";
import { PlaceSums, sumOf } from "./place_sums.ts";

/** Of the parts into which a block falls; the last may be shorter. */
export const PART_BYTES = 64 * 1024;

/** The parts of a block of `length` bytes that the span touches. */
export function partsAround({ from, to }: Span, length: number): Span {
  const end = Math.min(to, length);
  return { from: from - (from % PART_BYTES), to: Math.min(length, Math.ceil(end / PART_BYTES) * PART_BYTES) };
}

/** By location, whose bytes never change. Spans are those of `partsAround`. */
export class CheckedParts {
  readonly #sums = new PlaceSums();

  /** All parts of the span have a sum. */
  has({ segment, offset }: BytesLocation, { from, to }: Span): boolean {
    for (let at = from; at < to; at += PART_BYTES) {
      if (this.#sums.get(positionAt(segment, offset + at)) === undefined) return false;
    }
    return true;
  }

  /** The parts of a block that was read at `location` and found right. */
  add(cid: CID, { segment, offset }: BytesLocation, block: Uint8Array): void {
    for (let at = 0; at < block.length; at += PART_BYTES) {
      this.#sums.set(positionAt(segment, offset + at), sumOf(cid, block.subarray(at, at + PART_BYTES)));
    }
  }

  /** Whether `bytes`, which were read at `from` in the block at `location`, are the parts that stand there. */
  fit(cid: CID, { segment, offset }: BytesLocation, from: number, bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; at += PART_BYTES) {
      const known = this.#sums.get(positionAt(segment, offset + from + at));
      if (known === undefined || known !== sumOf(cid, bytes.subarray(at, at + PART_BYTES))) return false;
    }
    return true;
  }
}
