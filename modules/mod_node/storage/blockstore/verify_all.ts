/** Checks every stored block against its CID, as `repo/verify` does. */
import type { CID } from "multiformats/cid";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { failures, retryAfter } from "../../util/errors.ts";
import type { BlockStore } from "./store.ts";

const MAX_CONCURRENT = 8;

/** A block and its fault; `fault` is undefined for an intact block. */
export interface CheckedBlock {
  readonly cid: CID;
  readonly fault: string | undefined;
}

/**
 * Checks every stored form without trusting any cache. A form that moves in the meantime may be
 * yielded twice.
 * @throws the error of an unreachable store; it does not mean that a block is faulty
 */
export async function* verifyBlocks(
  store: BlockStore,
  signal: AbortSignal | undefined,
): AsyncGenerator<CheckedBlock, void, undefined> {
  const read = store.checker?.() ?? ((cid: CID) => store.check(cid));
  const cids = store.checker === undefined ? store.keys() : (store.keysToRead?.() ?? store.keys());
  for await (const checked of mapConcurrent(cids, MAX_CONCURRENT, (cid) => check(read, cid))) {
    signal?.throwIfAborted();
    if (checked !== undefined) yield checked;
  }
}

/** Returns undefined for a block that was removed in the meantime. */
async function check(read: BlockStore["check"], cid: CID): Promise<CheckedBlock | undefined> {
  try {
    const sound = await read(cid);
    if (sound === undefined) return undefined;
    return { cid, fault: sound ? undefined : failures.BLOCK_MISMATCH };
  } catch (error) {
    if (retryAfter(error) !== undefined) throw error;
    return { cid, fault: error instanceof Error ? error.message : String(error) };
  }
}
