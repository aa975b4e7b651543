/** Checks every stored block against its CID, as `repo/verify` does. */
import type { CID } from "multiformats/cid";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { failures, retryAfter } from "../../util/errors.ts";
import type { BlockStore } from "./store.ts";

const MAX_CONCURRENT = 8;

/** A block and what is wrong with it; `fault` is undefined for an intact one. */
export interface CheckedBlock {
  readonly cid: CID;
  readonly fault: string | undefined;
}

/** Every stored form, once, read without trusting any cache. @throws what says that the store is away: no block is faulty then */
export async function* verifyBlocks(
  store: BlockStore,
  signal: AbortSignal | undefined,
): AsyncGenerator<CheckedBlock, void, undefined> {
  for await (const checked of mapConcurrent(store.keys(), MAX_CONCURRENT, (cid) => check(store, cid))) {
    signal?.throwIfAborted();
    if (checked !== undefined) yield checked;
  }
}

/** Undefined for a block that was removed meanwhile. */
async function check(store: BlockStore, cid: CID): Promise<CheckedBlock | undefined> {
  try {
    const sound = await store.check(cid);
    if (sound === undefined) return undefined;
    return { cid, fault: sound ? undefined : failures.BLOCK_MISMATCH };
  } catch (error) {
    if (retryAfter(error) !== undefined) throw error;
    return { cid, fault: error instanceof Error ? error.message : String(error) };
  }
}
