/**
 * Copies the content of one pair of stores into another. Another run copies only what is missing.
 */
import { access } from "node:fs/promises";
import type { CID } from "multiformats/cid";
import { BlockBatch } from "../../storage/blockstore/batch.ts";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { StorePaths } from "../../storage/repo/datastore.ts";
import { batches } from "../../util/async/batches.ts";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { failure } from "../../util/errors.ts";
import { storeForms } from "../from_go_ipfs/import_blocks.ts";
import { importForeign, type Notice, openBlocks, openMetadata, type Stores } from "./engines.ts";
import { settleLostMetadata } from "./lost_metadata.ts";

export interface CopyProgress {
  /** Number of CIDs whose blocks the new stores have, and the bytes that were copied for them. */
  readonly blocks: number;
  readonly bytes: number;
  /** Number of CIDs to copy; undefined until they are counted. */
  readonly total?: number;
  /** Whether all blocks are copied, and `blocks` counts those that were checked since then. */
  readonly isChecking?: boolean;
}

export interface CopyOptions {
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined;
  readonly onNotice?: Notice | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Number of blocks to read concurrently. */
const MAX_CONCURRENT = 16;
/** Entries per transaction. */
const MAX_BATCH = 4096;
const PROGRESS_MS = 100;

/**
 * Copies everything in `from` into stores that are not in use yet. `metadataFolder` is the folder
 * of `to`'s metadata. Everything is durable when the promise resolves.
 */
export async function copyStores(
  from: StorePaths,
  to: Stores,
  metadataFolder: string,
  { onNotice = () => {}, ...options }: CopyOptions,
): Promise<CopyProgress> {
  const isInDatabase = from.foreign?.hasBlocks === true;
  // If Kubo has blocks only in its database, they are copied from there, and no block store is
  // created in its repo.
  const blocks = isInDatabase && !(await exists(from.blocks)) ? undefined : await openBlocks(from, onNotice);
  let progress: CopyProgress = { blocks: 0, bytes: 0 };
  try {
    if (blocks !== undefined) {
      await settleLostMetadata(from, blocks, { onNotice });
      progress = await copyBlocks(blocks, to.blocks, options);
    }
    const { signal, onProgress } = options;
    const before = progress;
    const report = (each: CopyProgress) => {
      progress = { blocks: Math.max(before.blocks, each.blocks), bytes: before.bytes + each.bytes };
      onProgress?.(progress);
    };
    await copyAllMetadata(from, to, metadataFolder, { onNotice, signal, onProgress: report });
    if (blocks?.joinsForms === true && to.blocks.joinsForms !== true) await storeForms(to, signal);
    return progress;
  } finally {
    await blocks?.close();
  }
}

/**
 * Replaces all metadata of `to`: an earlier attempt may have copied entries that were removed
 * since.
 */
export async function copyAllMetadata(
  from: StorePaths,
  to: Stores,
  metadataFolder: string,
  options: Pick<CopyOptions, "signal" | "onProgress"> & { readonly onNotice: Notice },
): Promise<void> {
  const { foreign } = from;
  await removeAll(to.metadata, "");
  if (await exists(from.metadata)) {
    const metadata = await openMetadata(from, options.onNotice);
    await copyEntries(metadata, to.metadata, options).finally(() => metadata.close());
  }
  if (foreign === undefined) return;
  await importForeign({ from: foreign, metadataFolder, to, ...options });
  const { importStateKeys } = await import("../from_go_ipfs/import_metadata.ts");
  for (const prefix of importStateKeys) await removeAll(to.metadata, prefix);
}

/** Copies all entries as of one moment. */
export async function copyEntries(
  from: MetadataStore,
  to: MetadataStore,
  { signal }: Pick<CopyOptions, "signal"> = {},
): Promise<void> {
  for await (const page of batches(from.range(), MAX_BATCH)) {
    signal?.throwIfAborted();
    await to.transaction((writer) => {
      for (const [key, value] of page) writer.put(key, value);
    });
  }
}

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

interface BlockCopyOptions extends Omit<CopyOptions, "onNotice"> {
  /**
   * Called for a block that is listed but cannot be read. It throws to stop the copy, which is the
   * default.
   */
  readonly onMissing?: ((cid: CID, error: unknown) => undefined) | undefined;
  /** Number of bytes that were copied before. */
  readonly bytes?: number | undefined;
}

/** Copies the blocks that `to` lacks. They are durable when the promise resolves. */
export async function copyBlocks(from: BlockStore, to: BlockStore, options: BlockCopyOptions): Promise<CopyProgress> {
  const { onProgress = () => {}, onMissing = raise, signal, bytes: before = 0 } = options;
  onProgress({ blocks: 0, bytes: before });
  const { blocks: total } = await from.stat();
  const isThere = await presenceIn(to);
  const batch = new BlockBatch(to);
  let progress: CopyProgress = { blocks: 0, bytes: before, total };
  const report = atIntervals(onProgress);
  const read = async (cid: CID) => {
    if (await isThere(cid)) return { cid, bytes: undefined };
    return { cid, bytes: await needed(from, cid).catch((error: unknown) => onMissing(cid, error)) };
  };
  for await (const { cid, bytes } of mapConcurrent(from.keysToRead?.() ?? from.keys(), MAX_CONCURRENT, read)) {
    signal?.throwIfAborted();
    if (bytes !== undefined) await batch.add({ cid, bytes });
    progress = { blocks: progress.blocks + 1, bytes: progress.bytes + (bytes?.length ?? 0), total };
    report(progress);
  }
  await batch.flush();
  await to.sync();
  signal?.throwIfAborted();
  onProgress(progress);
  return progress;
}

interface CheckOptions extends Pick<CopyOptions, "onProgress" | "signal"> {
  /** Number of blocks to check, for progress reports. */
  readonly total: number;
  /**
   * Whether to read every block from the disk or the object store, and compare it with its hash.
   */
  readonly read: boolean;
}

/** Yields the CIDs of blocks that are missing or damaged in `to`. */
export async function* missingBlocks(
  listed: AsyncIterable<CID>,
  to: BlockStore,
  { onProgress = () => {}, total, read, signal }: CheckOptions,
): AsyncGenerator<CID> {
  const isThere = read ? async (cid: CID) => (await to.check(cid)) === true : await presenceIn(to);
  const report = atIntervals(onProgress);
  let blocks = 0;
  const look = async (cid: CID) => ({ cid, found: await isThere(cid) });
  for await (const { cid, found } of mapConcurrent(listed, MAX_CONCURRENT, look)) {
    signal?.throwIfAborted();
    if (!found) yield cid;
    blocks += 1;
    report({ blocks, bytes: 0, total, isChecking: true });
  }
}

/** If other hosts store blocks as well, one query for all blocks replaces a query for each. */
async function presenceIn(store: BlockStore): Promise<(cid: CID) => boolean | Promise<boolean>> {
  if (store.knows === undefined) return (cid) => store.has(cid);
  await store.stat();
  return (cid) => store.knows?.(cid) === true;
}

function atIntervals(report: (progress: CopyProgress) => void): (progress: CopyProgress) => void {
  let reportedAt = performance.now();
  return (progress) => {
    if (performance.now() - reportedAt < PROGRESS_MS) return;
    reportedAt = performance.now();
    report(progress);
  };
}

async function needed(from: BlockStore, cid: CID): Promise<Uint8Array> {
  const bytes = await from.get(cid);
  if (bytes === undefined) throw failure("BLOCKSTORE_NOT_FOUND");
  return bytes;
}

function raise(_cid: CID, error: unknown): never {
  throw error;
}

export async function removeAll(metadata: MetadataStore, prefix: string): Promise<void> {
  for await (const page of batches(metadata.range({ prefix }), MAX_BATCH)) {
    await metadata.transaction((writer) => {
      for (const [key] of page) writer.delete(key);
    });
  }
}
