/** Copies the content of one pair of stores into another. Repeated, it copies what is missing. */
import { access } from "node:fs/promises";
import type { CID } from "multiformats/cid";
import { BlockBatch } from "../../storage/blockstore/batch.ts";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { StorePaths } from "../../storage/repo/datastore.ts";
import { batches } from "../../util/async/batches.ts";
import { mapConcurrent } from "../../util/async/map_concurrent.ts";
import { failure } from "../../util/errors.ts";
import { importFromGoIpfs, type Notice, openBlocks, openMetadata, type Stores } from "./engines.ts";
import { settleLostMetadata } from "./lost_metadata.ts";

export interface CopyProgress {
  /** CIDs of blocks that the new stores have, and the bytes that were copied for them. */
  readonly blocks: number;
  readonly bytes: number;
  /** CIDs of blocks to copy; undefined until they are counted. */
  readonly total?: number;
}

export interface CopyOptions {
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined;
  readonly onNotice?: Notice | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Blocks that are read concurrently. */
const MAX_CONCURRENT = 16;
/** Entries in one transaction. */
const MAX_BATCH = 4096;
const PROGRESS_MS = 100;

/**
 * Copies everything in `from` into stores that nobody uses yet. `metadataFolder` is that of `to`. Durable
 * when it resolves.
 */
export async function copyStores(
  from: StorePaths,
  to: Stores,
  metadataFolder: string,
  { onNotice = () => {}, ...options }: CopyOptions,
): Promise<CopyProgress> {
  const blocks = await openBlocks(from, onNotice);
  try {
    await settleLostMetadata(from, blocks, { onNotice });
    const progress = await copyBlocks(blocks, to.blocks, options);
    const { levelDb } = from;
    // Metadata that an earlier attempt has copied may have been removed since.
    await removeAll(to.metadata, "");
    if (await exists(from.metadata)) await copyMetadata(from, to.metadata, { onNotice, signal: options.signal });
    if (levelDb !== undefined) {
      await importFromGoIpfs({ levelDb, metadataFolder, to, onNotice });
      const { importStateKeys } = await import("../from_go_ipfs/import_metadata.ts");
      for (const prefix of importStateKeys) await removeAll(to.metadata, prefix);
    }
    return progress;
  } finally {
    await blocks.close();
  }
}

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function copyBlocks(from: BlockStore, to: BlockStore, options: CopyOptions): Promise<CopyProgress> {
  const { onProgress = () => {}, signal } = options;
  onProgress({ blocks: 0, bytes: 0 });
  const { blocks: total } = await from.stat();
  const batch = new BlockBatch(to);
  let progress: CopyProgress = { blocks: 0, bytes: 0, total };
  let told = performance.now();
  const read = async (cid: CID) => ({ cid, bytes: (await to.has(cid)) ? undefined : await needed(from, cid) });
  for await (const { cid, bytes } of mapConcurrent(from.keys(), MAX_CONCURRENT, read)) {
    signal?.throwIfAborted();
    if (bytes !== undefined) await batch.add({ cid, bytes });
    progress = { blocks: progress.blocks + 1, bytes: progress.bytes + (bytes?.length ?? 0), total };
    if (performance.now() - told < PROGRESS_MS) continue;
    told = performance.now();
    onProgress(progress);
  }
  await batch.flush();
  await to.sync();
  signal?.throwIfAborted();
  onProgress(progress);
  return progress;
}

async function needed(from: BlockStore, cid: CID): Promise<Uint8Array> {
  const bytes = await from.get(cid);
  if (bytes === undefined) throw failure("BLOCKSTORE_NOT_FOUND");
  return bytes;
}

async function copyMetadata(
  paths: StorePaths,
  to: MetadataStore,
  { onNotice, signal }: Pick<CopyOptions, "signal"> & { readonly onNotice: Notice },
): Promise<void> {
  const from = await openMetadata(paths, onNotice);
  try {
    for await (const page of batches(from.range(), MAX_BATCH)) {
      signal?.throwIfAborted();
      await to.transaction((writer) => {
        for (const [key, value] of page) writer.put(key, value);
      });
    }
  } finally {
    await from.close();
  }
}

async function removeAll(metadata: MetadataStore, prefix: string): Promise<void> {
  for await (const page of batches(metadata.range({ prefix }), MAX_BATCH)) {
    await metadata.transaction((writer) => {
      for (const [key] of page) writer.delete(key);
    });
  }
}
