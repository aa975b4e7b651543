/** Decides when a directory is split into several blocks. */

import { encodeLink, type PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { byteLength } from "../../util/byte_text.ts";

/**
 * How the size of a directory is measured: names and CIDs of its links, its block, or not at all.
 */
export const sizeEstimates = ["links", "block", "disabled"] as const;
export type SizeEstimate = (typeof sizeEstimates)[number];

/**
 * A directory that exceeds one of these limits is sharded. When it no longer exceeds any, it
 * becomes plain again.
 */
export interface ShardLimits {
  readonly estimate: SizeEstimate;
  /** Maximum number of bytes, as `estimate` counts them. */
  readonly threshold: number;
  /** Maximum number of entries; 0 for no limit. */
  readonly maxLinks: number;
}

/** `true` shards every directory that has entries, as `Experimental.ShardingEnabled` does. */
export type Sharding = boolean | ShardLimits;

/** Tracks the size of a directory while entries are added and removed. */
export class DirectorySize {
  #links = 0;
  /** Bytes of names and CIDs. */
  #bytes = 0;
  /** Size of the block if the whole directory were in one block. */
  #block: number;

  /** @param empty bytes of the block without links */
  constructor(empty: number) {
    this.#block = empty;
  }

  /** @param encoded bytes of the link in the block */
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
