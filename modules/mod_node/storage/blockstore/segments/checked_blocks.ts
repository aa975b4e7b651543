/**
 * Remembers blocks on the disk that matched their CIDs. Later reads of them are verified by a
 * checksum, which costs a third of hashing.
 */
import type { CID } from "multiformats/cid";
import { matchesHere } from "../../../formats/cid/hashes.ts";
import { type BytesLocation, positionAt } from "./format.ts";
import { checksumOf, PositionChecksums } from "./position_checksums.ts";

/** Marks a block that was read once. */
const NO_SUM = 0;

/**
 * Checksums by location; the bytes at a location never change. A wrong checksum is not final: the
 * hash decides.
 */
export class CheckedBlocks {
  readonly #sums = new PositionChecksums();

  /** Whether a block was read at this location and was right. */
  has({ segment, offset }: BytesLocation): boolean {
    return this.#sums.get(positionAt(segment, offset)) !== undefined;
  }

  /** Whether the next read of this location is verified by a checksum. */
  isSummed({ segment, offset }: BytesLocation): boolean {
    return (this.#sums.get(positionAt(segment, offset)) ?? NO_SUM) !== NO_SUM;
  }

  /** Whether the checksum matches. If it does not, `check` decides. */
  fits(cid: CID, { segment, offset }: BytesLocation, bytes: Uint8Array): boolean {
    const known = this.#sums.get(positionAt(segment, offset)) ?? NO_SUM;
    return known !== NO_SUM && known === checksumOf(cid, bytes);
  }

  /**
   * Whether `bytes`, which were read at `location`, match the CID. Returns no promise when the hash
   * function is synchronous.
   */
  check(cid: CID, { segment, offset }: BytesLocation, bytes: Uint8Array): boolean | Promise<boolean> {
    const position = positionAt(segment, offset);
    const known = this.#sums.get(position);
    // Most blocks are read once, so the checksum is computed at the second read.
    const sum = known === undefined ? NO_SUM : checksumOf(cid, bytes);
    if (sum !== NO_SUM && known === sum) return true;
    const noted = (fits: boolean) => {
      if (fits) this.#sums.set(position, sum);
      return fits;
    };
    const fits = matchesHere(cid, bytes);
    return fits instanceof Promise ? fits.then(noted) : noted(fits);
  }
}
