/** When a directory is spread over several blocks. */

import { encodeLink, type PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { byteLength } from "../../util/byte_text.ts";

/** What counts as the size of a directory: names and CIDs of its links, its block, or nothing. */
export const sizeEstimates = ["links", "block", "disabled"] as const;
export type SizeEstimate = (typeof sizeEstimates)[number];

/** A directory that exceeds one of these is sharded, and one that no longer does is plain again. */
export interface ShardLimits {
  readonly estimate: SizeEstimate;
  /** Bytes, as `estimate` counts them. */
  readonly threshold: number;
  /** Entries; 0 for any number. */
  readonly maxLinks: number;
}

/** True: every directory that has entries, as `Experimental.ShardingEnabled` says. */
export type Sharding = boolean | ShardLimits;

/** The size of a directory as its entries come and go. */
export class DirectorySize {
  #links = 0;
  /** Of names and CIDs. */
  #bytes = 0;
  /** Of the block that holds all of it. */
  #block: number;

  /** `empty`: bytes of its block without links. */
  constructor(empty: number) {
    this.#block = empty;
  }

  /** `encoded`: bytes of the link in the block. */
  add(link: PbLink, encoded = encodeLink(link).length): void {
    this.#count(link, encoded, 1);
  }

  remove(link: PbLink, encoded = encodeLink(link).length): void {
    this.#count(link, encoded, -1);
  }

  exceeds({ estimate, threshold, maxLinks }: ShardLimits): boolean {
    if (maxLinks > 0 && this.#links > maxLinks) return true;
    if (estimate === "disabled") return false;
    return (estimate === "block" ? this.#block : this.#bytes) > threshold;
  }

  #count({ name, cid }: PbLink, encoded: number, times: 1 | -1): void {
    this.#links += times;
    this.#bytes += times * (byteLength(name) + cid.bytes.length);
    this.#block += times * encoded;
  }
}
