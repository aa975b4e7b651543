/** Reading nodes for one call: where blocks come from, and what is said when one cannot be had. */
import type { CID } from "multiformats/cid";
import type { Blocks, ReadOptions } from "../blocks/blocks.ts";
import { failure, NodeError } from "../errors.ts";

/** Reads one block; rejects with what the caller is to be told when it cannot be had. */
export type ReadBlock = (cid: CID) => Promise<Uint8Array>;

/**
 * A missing block is a missing node: the texts differ, as they do in the reference. `tellsMissed`: and which one was
 * waited for when the time was over.
 */
export function nodeReader(blocks: Blocks, options: ReadOptions = {}, tellsMissed = false): ReadBlock {
  return async (cid) => {
    try {
      return await blocks.get(cid, options);
    } catch (error) {
      if (tellsMissed && options.signal?.aborted && error instanceof NodeError) {
        throw new NodeError(`failed to get block for ${cid}: ${error.message}`, { cause: error.cause ?? error });
      }
      throw error instanceof NodeError && error.code === "BLOCK_NOT_FOUND"
        ? failure("NODE_NOT_FOUND", undefined, error)
        : error;
    }
  };
}
