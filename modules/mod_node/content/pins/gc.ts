/** Garbage collection: removes all blocks that nothing retains, for `repo/gc`. */
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
  /**
   * More roots whose local blocks are retained even if the DAG is incomplete, such as the root of
   * MFS.
   */
  readonly partial?: readonly CID[];
}

export interface Marking {
  /** Buffers for blocks that are only read for their links. */
  readonly buffers: BufferPool;
  readonly signal?: AbortSignal | undefined;
}

/**
 * These reads bypass the cache. So damage on the disk stops a collection, even in blocks that were
 * read before.
 */
export const markingBuffers = (): BufferPool => new BufferPool({ bypassesCache: true });

/** Maximum number of blocks that are removed together. */
const MAX_BATCH = 256;

/**
 * Removes unreferenced blocks and reports each removed block and each error. Removes nothing if any
 * pin cannot be walked completely. The caller holds the lock exclusively until this resolves. The
 * store returns the space to the disk later, in its `compact`.
 */
export async function collectGarbage(
  blocks: BlockService,
  pins: Pins,
  report: (result: Removed | NotRemoved) => void,
  { signal, partial = [] }: CollectOptions = {},
): Promise<void> {
  const { retained, errors } = await mark(blocks, pins, partial, signal);
  if (errors.length > 0) {
    for (const error of errors) report({ error });
    report({ error: "garbage collection aborted: could not retrieve some links" });
    return;
  }
  let failed = false;
  let doomed: CID[] = [];
  const sweep = async () => {
    failed = !(await remove(blocks, doomed, report)) || failed;
    doomed = [];
  };
  for await (const cid of blocks.store.keys()) {
    signal?.throwIfAborted();
    const isRetained = retained.keeps(cid, blocks.store);
    if (isRetained instanceof Promise ? await isRetained : isRetained) continue;
    doomed.push(cid);
    if (doomed.length === MAX_BATCH) await sweep();
  }
  if (doomed.length > 0) await sweep();
  if (failed) report({ error: "garbage collection incomplete: could not delete some blocks" });
}

async function mark(
  blocks: BlockService,
  pins: Pins,
  partial: readonly CID[],
  signal: AbortSignal | undefined,
): Promise<{ readonly retained: RetainedBlocks; readonly errors: readonly string[] }> {
  const retained = new RetainedBlocks();
  const buffers = markingBuffers();
  const read = nodeReader(blocks, { offline: true, signal, evenDenied: true, buffers });
  const errors = await markPinned(pins, retained, read, { buffers, signal });
  const find = (cid: CID) => blocks.find(cid, buffers);
  for (const root of [...partial, ...pins.guarded()]) await markPresent(root, retained, find, { buffers, signal });
  return { retained, errors };
}

/** Marks the blocks below pins. Returns a message for each pin that could not be walked. */
export async function markPinned(
  pins: Pins,
  retained: RetainedBlocks,
  read: (cid: CID) => Promise<Uint8Array>,
  marking: Marking,
): Promise<string[]> {
  const errors: string[] = [];
  const slices = new TimeSlices();
  for await (const root of pins.list("recursive")) {
    const turn = slices.due();
    if (turn !== undefined) await turn;
    try {
      for await (const _ of cidsBelow(root, { read, seen: retained.walked, ...marking }));
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      errors.push(`could not retrieve links for ${root}: ${error.message}`);
    }
  }
  for await (const cid of pins.list("direct")) retained.addAlone(cid);
  return errors;
}

/** Marks the local blocks of a DAG that may be incomplete. */
export async function markPresent(
  root: CID,
  retained: RetainedBlocks,
  find: (cid: CID) => Promise<Uint8Array | undefined>,
  marking: Marking,
): Promise<void> {
  for await (const _ of present(root, retained.walked, find, marking));
}

/** Yields the local blocks of a DAG that may be incomplete, except those in `seen`. */
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

/** Yields the CIDs of the DAG, with the root. */
async function* cidsBelow(root: CID, how: WalkOptions & Marking): AsyncGenerator<CID> {
  for await (const page of walkPages(root, { ...how, skipLeaves: true, lenient: true })) {
    for (const { cid, bytes } of page) {
      if (bytes !== undefined) how.buffers.release(bytes);
      yield cid;
    }
  }
}

/** Returns whether all of them could be removed. */
async function remove(
  blocks: BlockService,
  cids: readonly CID[],
  report: (result: Removed | NotRemoved) => void,
): Promise<boolean> {
  try {
    const removed = await blocks.store.delete(cids);
    for (const [at, cid] of cids.entries()) if (removed[at]) report({ removed: cid });
    return true;
  } catch (error) {
    for (const cid of cids) report({ error: `could not remove ${cid}: ${(error as Error).message}` });
    return false;
  }
}
