/** Garbage collection: removes all blocks that nothing keeps, as `repo/gc` does. */
import type { CID } from "multiformats/cid";
import type { CidSet } from "../../formats/cid/set.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { RetainedBlocks } from "../../storage/blockstore/retained_blocks.ts";
import { TimeSlices } from "../../util/async/steps.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { nodeReader } from "../dag/reader.ts";
import { type WalkOptions, walkPages } from "../dag/walk.ts";
import type { Pins } from "./pins.ts";

export interface Removed {
  readonly removed: CID;
}

export interface NotRemoved {
  readonly error: string;
}

export interface CollectOptions {
  readonly signal?: AbortSignal | undefined;
  /** More roots whose local blocks are kept, although parts may be missing: the root of MFS. */
  readonly partial?: readonly CID[];
}

export interface Marking {
  /** Where blocks are read into, which are needed for their links alone. */
  readonly buffers: BufferPool;
  readonly signal?: AbortSignal | undefined;
}

/** Damage on the disk stops a collection, also of what somebody has read just before. */
export const markingBuffers = (): BufferPool => new BufferPool({ bypassesCache: true });

/** Blocks that are removed together. */
const MAX_BATCH = 256;

/**
 * Reports what was removed and what went wrong. Nothing is removed unless every pin could be
 * walked. The caller holds the lock exclusively until it resolves; `compact` of the store gives the
 * space back to the disk later.
 */
export async function collectGarbage(
  blocks: BlockService,
  pins: Pins,
  tell: (result: Removed | NotRemoved) => void,
  { signal, partial = [] }: CollectOptions = {},
): Promise<void> {
  const { kept, errors } = await mark(blocks, pins, partial, signal);
  if (errors.length > 0) {
    for (const error of errors) tell({ error });
    tell({ error: "garbage collection aborted: could not retrieve some links" });
    return;
  }
  let failed = false;
  let doomed: CID[] = [];
  const sweep = async () => {
    failed = !(await remove(blocks, doomed, tell)) || failed;
    doomed = [];
  };
  for await (const cid of blocks.store.keys()) {
    signal?.throwIfAborted();
    const isKept = kept.keeps(cid, blocks.store);
    if (isKept instanceof Promise ? await isKept : isKept) continue;
    doomed.push(cid);
    if (doomed.length === MAX_BATCH) await sweep();
  }
  if (doomed.length > 0) await sweep();
  if (failed) tell({ error: "garbage collection incomplete: could not delete some blocks" });
}

async function mark(
  blocks: BlockService,
  pins: Pins,
  partial: readonly CID[],
  signal: AbortSignal | undefined,
): Promise<{ readonly kept: RetainedBlocks; readonly errors: readonly string[] }> {
  const kept = new RetainedBlocks();
  const buffers = markingBuffers();
  const read = nodeReader(blocks, { offline: true, signal, evenDenied: true, buffers });
  const errors = await markPinned(pins, kept, read, { buffers, signal });
  const find = (cid: CID) => blocks.find(cid, buffers);
  for (const root of [...partial, ...pins.guarded()]) await markPresent(root, kept, find, { buffers, signal });
  return { kept, errors };
}

/** Marks what pins keep; gives a sentence for each that could not be walked. */
export async function markPinned(
  pins: Pins,
  kept: RetainedBlocks,
  read: (cid: CID) => Promise<Uint8Array>,
  marking: Marking,
): Promise<string[]> {
  const errors: string[] = [];
  const slices = new TimeSlices();
  for await (const root of pins.list("recursive")) {
    const turn = slices.due();
    if (turn !== undefined) await turn;
    try {
      for await (const _ of cidsBelow(root, { read, seen: kept.walked, ...marking }));
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      errors.push(`could not retrieve links for ${root}: ${error.message}`);
    }
  }
  for await (const cid of pins.list("direct")) kept.addAlone(cid);
  return errors;
}

/** Marks the local blocks of a DAG that need not be complete. */
export async function markPresent(
  root: CID,
  kept: RetainedBlocks,
  find: (cid: CID) => Promise<Uint8Array | undefined>,
  marking: Marking,
): Promise<void> {
  for await (const _ of present(root, kept.walked, find, marking));
}

/** The blocks of a DAG that need not be complete, without those that are in `seen`. */
export async function* present(
  root: CID,
  seen: CidSet,
  find: (cid: CID) => Promise<Uint8Array | undefined>,
  marking: Marking,
): AsyncGenerator<CID> {
  const missing = failure("BLOCK_NOT_FOUND");
  const read = async (cid: CID) => {
    const bytes = await find(cid);
    if (bytes === undefined) throw missing;
    return bytes;
  };
  const failed = (_: CID, error: NodeError) => {
    if (error !== missing) throw error;
  };
  yield* cidsBelow(root, { read, seen, failed, ...marking });
}

/** The root as well. */
async function* cidsBelow(root: CID, how: WalkOptions & Marking): AsyncGenerator<CID> {
  for await (const page of walkPages(root, { ...how, skipLeaves: true, lenient: true })) {
    for (const { cid, bytes } of page) {
      if (bytes !== undefined) how.buffers.release(bytes);
      yield cid;
    }
  }
}

/** True when all of them are gone. */
async function remove(
  blocks: BlockService,
  cids: readonly CID[],
  tell: (result: Removed | NotRemoved) => void,
): Promise<boolean> {
  try {
    const removed = await blocks.store.delete(cids);
    for (const [at, cid] of cids.entries()) if (removed[at]) tell({ removed: cid });
    return true;
  } catch (error) {
    for (const cid of cids) tell({ error: `could not remove ${cid}: ${(error as Error).message}` });
    return false;
  }
}
