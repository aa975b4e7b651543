/** Writes DAGs as archives ("CARv1 specification"), for `dag export`. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { NodeError } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { walkPages } from "../dag/walk.ts";
import { isRead, writeCar } from "./write.ts";

export interface ExportOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * The pool that `read` takes its buffers from. The consumer of the pieces releases each of them
   * to the pool after use.
   */
  readonly buffers?: BufferPool | undefined;
  /** Leave out blocks below the root that `read` cannot find. */
  readonly partial?: boolean | undefined;
}

/**
 * Writes an archive of a block and everything below it: parents before children, links in order,
 * each block once.
 */
export const exportCar = (root: CID, read: ReadBlock, options: ExportOptions = {}): AsyncIterable<Uint8Array> =>
  writeCar([root], blocksBelow(root, read, options), options.buffers);

async function* blocksBelow(root: CID, read: ReadBlock, options: ExportOptions) {
  const { partial = false, ...how } = options;
  const failed = (cid: CID, error: NodeError) => {
    if (cid.equals(root) || error.code !== "NODE_NOT_FOUND") throw error;
  };
  for await (const page of walkPages(root, { read, ...how, ...(partial && { failed }) })) yield page.filter(isRead);
}
