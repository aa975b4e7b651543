/** Blocks on the disk that were found to be those of their CIDs: the next reads of them are checked by a sum, which costs a third. */
import type { CID } from "multiformats/cid";
import { matchesHere } from "../../../formats/cid/hashes.ts";
import { type BytesLocation, positionAt } from "./format.ts";
import { PlaceSums, sumOf } from "./place_sums.ts";

/** It was read once. */
const NO_SUM = 0;

/** By location, whose bytes never change. Whatever the sum says, what is refused is refused by the hash. */
export class CheckedBlocks {
  readonly #sums = new PlaceSums();

  /** A block was read there, and found right. */
  has({ segment, offset }: BytesLocation): boolean {
    return this.#sums.get(positionAt(segment, offset)) !== undefined;
  }

  /** The next read of it is checked by a sum. */
  isSummed({ segment, offset }: BytesLocation): boolean {
    return (this.#sums.get(positionAt(segment, offset)) ?? NO_SUM) !== NO_SUM;
  }

  /** Whether the sum says so: where it does not, `check` does. */
  fits(cid: CID, { segment, offset }: BytesLocation, bytes: Uint8Array): boolean {
    const known = this.#sums.get(positionAt(segment, offset)) ?? NO_SUM;
    return known !== NO_SUM && known === sumOf(cid, bytes);
  }

  /** Whether `bytes`, which were read at `location`, are those of the CID; at once where the hash function can tell so. */
  check(cid: CID, { segment, offset }: BytesLocation, bytes: Uint8Array): boolean | Promise<boolean> {
    const position = positionAt(segment, offset);
    const known = this.#sums.get(position);
    // Most blocks are read once: the sum is made when one is read again.
    const sum = known === undefined ? NO_SUM : sumOf(cid, bytes);
    if (sum !== NO_SUM && known === sum) return true;
    const noted = (fits: boolean) => {
      if (fits) this.#sums.set(position, sum);
      return fits;
    };
    const fits = matchesHere(cid, bytes);
    return fits instanceof Promise ? fits.then(noted) : noted(fits);
  }
}
