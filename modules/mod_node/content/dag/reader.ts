/** Reading nodes for one call: where blocks come from, and what is said when one cannot be had. */
import type { CID } from "multiformats/cid";
import type { BlockService, ReadOptions } from "../../storage/blockstore/block_service.ts";
import { failure, NodeError } from "../../util/errors.ts";

/** Reads one block; rejects with what the caller is to be told when it cannot be had. */
export type ReadBlock = (cid: CID) => Promise<Uint8Array>;

export interface NodeReadOptions extends ReadOptions {
  /** Who gives up is not told which block was waited for: the reference names none where it reads in a session. */
  readonly nameless?: boolean | undefined;
}

/** Reads as `cat`, `ls` and their like do. */
export const inSession = ({ signal, offline, buffers }: ReadOptions): NodeReadOptions => ({
  signal,
  offline,
  buffers,
  nameless: true,
});

/** A missing block is a missing node: the texts differ, as they do in the reference. */
export function nodeReader(blocks: BlockService, options: NodeReadOptions = {}): ReadBlock {
  const { signal, nameless } = options;
  return async (cid) => {
    try {
      return await blocks.get(cid, options);
    } catch (error) {
      // Bitswap gives up with the words of the signal, over a cause of its own.
      if (!nameless && signal?.aborted && NodeError.is(error) && error.message === signal.reason?.message) {
        throw new NodeError(`failed to get block for ${cid}: ${error.message}`, { cause: error.cause ?? error });
      }
      throw error instanceof NodeError && error.code === "BLOCK_NOT_FOUND"
        ? failure("NODE_NOT_FOUND", undefined, error)
        : error;
    }
  };
}
