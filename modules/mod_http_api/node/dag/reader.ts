/** Reading nodes for one call: where blocks come from, and what is said when one cannot be had. */
import type { CID } from "multiformats/cid";
import type { Blocks, ReadOptions } from "../blocks/blocks.ts";
import { failure, NodeError } from "../errors.ts";

/** Reads one block; rejects with what the caller is to be told when it cannot be had. */
export type ReadBlock = (cid: CID) => Promise<Uint8Array>;

/** A missing block is a missing node: the texts differ, as they do in the reference. */
export function nodeReader(blocks: Blocks, options: ReadOptions = {}): ReadBlock {
  return async (cid) => {
    try {
      return await blocks.get(cid, options);
    } catch (error) {
      throw error instanceof NodeError && error.code === "BLOCK_NOT_FOUND"
        ? failure("NODE_NOT_FOUND", undefined, error)
        : error;
    }
  };
}
