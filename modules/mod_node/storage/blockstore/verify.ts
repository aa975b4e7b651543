/** Whether every stored block is what its CID says (storage section 8, "repo/verify"). */
import type { CID } from "multiformats/cid";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { failures } from "../../util/errors.ts";
import type { BlockStore } from "./store.ts";

const MAX_CONCURRENT = 8;

/** A block and what is wrong with it: undefined for one that is sound. */
export interface CheckedBlock {
  readonly cid: CID;
  readonly fault: string | undefined;
}

/** Every stored form, once, read without any trust. */
export async function* verifyBlocks(
  store: BlockStore,
  signal: AbortSignal | undefined,
): AsyncGenerator<CheckedBlock, void, undefined> {
  for await (const checked of mapConcurrent(store.keys(), MAX_CONCURRENT, (cid) => check(store, cid))) {
    signal?.throwIfAborted();
    if (checked !== undefined) yield checked;
  }
}

/** Undefined for a block that has gone meanwhile. Never rejects. */
async function check(store: BlockStore, cid: CID): Promise<CheckedBlock | undefined> {
  try {
    const sound = await store.check(cid);
    if (sound === undefined) return undefined;
    return { cid, fault: sound ? undefined : failures.BLOCK_MISMATCH };
  } catch (error) {
    return { cid, fault: error instanceof Error ? error.message : String(error) };
  }
}
