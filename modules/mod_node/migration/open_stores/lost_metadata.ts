/** Handles blocks without metadata. Without pins, garbage collection would remove every block. */

import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import { copyHeader, readCopy } from "../../storage/metadata/copy_file.ts";
import { syncFolder } from "../../storage/repo/atomic_file.ts";
import type { StorePaths } from "../../storage/repo/datastore.ts";
import { batches } from "../../util/async/batches.ts";
import { counted } from "../../util/counted.ts";
import { failure } from "../../util/errors.ts";
import { metadataCopy, metadataToRestore, type Notice, openMetadata } from "./engines.ts";

/**
 * How to handle lost metadata: refuse to start, restore the copy, or start without pins, files and
 * names.
 */
export type LostMetadata = "refuse" | "restore" | "none";

export interface LostMetadataOptions {
  readonly lostMetadata?: LostMetadata | undefined;
  readonly onNotice: Notice;
}

/** Entries per transaction. */
const MAX_BATCH = 4096;

/**
 * To be called before the metadata is opened, because opening creates it if it is missing.
 * @throws NodeError METADATA_LOST with the possible remedies; for a damaged copy
 */
export async function settleLostMetadata(
  paths: StorePaths,
  blocks: BlockStore,
  { lostMetadata = "refuse", onNotice }: LostMetadataOptions,
): Promise<void> {
  const { metadata } = paths;
  await takeRestored(paths, onNotice);
  if (await hasContent(join(metadata, "data.mdb"))) return;
  const path = metadataCopy(paths);
  const copy = await copyHeader(path);
  // A repo of go-ipfs or Kubo has its pins in another database. It has no metadata of this node
  // before its first start.
  const isFirst = copy === undefined && paths.foreign !== undefined;
  if (isFirst || (await isEmpty(blocks))) return;
  if (lostMetadata === "none") {
    onNotice(`${metadata} was lost: nothing is pinned, and garbage collection will remove every block`);
    // Retains the copy of the lost metadata: the copy of the new metadata gets the original name.
    if (copy !== undefined) await rename(path, `${path}.lost`);
    return;
  }
  if (copy !== undefined && lostMetadata === "restore") {
    const entries = await restore(path, paths, onNotice);
    onNotice(
      `${metadata} was lost: ${counted(entries, "entry was", "entries were")} restored from the copy of ${copy.made}; later changes are gone`,
    );
    return;
  }
  throw failure("METADATA_LOST", { metadata, blocks: paths.blocks, remedy: remedyFor(copy?.made, path) });
}

/**
 * Turns the metadata of a restored backup into the metadata of this repo, once, and then deletes
 * the file.
 */
async function takeRestored(paths: StorePaths, onNotice: Notice): Promise<void> {
  const { metadata } = paths;
  const restored = metadataToRestore(paths);
  const found = await copyHeader(restored);
  if (found === undefined) return;
  if (!(await hasContent(join(metadata, "data.mdb")))) {
    const entries = await restore(restored, paths, onNotice);
    onNotice(`${metadata} was restored from a backup of ${found.made}: ${counted(entries, "entry", "entries")}`);
  }
  await rm(restored);
  await syncFolder(dirname(restored));
}

async function hasContent(file: string): Promise<boolean> {
  try {
    return (await stat(file)).size > 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

async function isEmpty(blocks: BlockStore): Promise<boolean> {
  for await (const _ of blocks.keys()) return false;
  return true;
}

function remedyFor(made: string | undefined, path: string): string {
  const none = "to start with no pins at all, use --rebuild-pins-none (node_lost_metadata: none)";
  return made === undefined
    ? `There is no copy in ${path}: put back a backup of the folder; or, ${none}`
    : `Put back a backup of the folder; or start once with --restore-pins (option node_lost_metadata: restore), which takes the copy of ${made} in ${path}; or, ${none}`;
}

/** Restores all entries or none: the new store is renamed when it is complete. */
async function restore(copy: string, paths: StorePaths, onNotice: Notice): Promise<number> {
  const { metadata } = paths;
  const draft = `${metadata}.restoring`;
  await rm(draft, { recursive: true, force: true });
  let entries = 0;
  const store = await openMetadata({ ...paths, metadata: draft }, onNotice);
  try {
    for await (const page of batches(readCopy(copy), MAX_BATCH)) {
      await store.transaction((writer) => {
        for (const [key, value] of page) writer.put(key, value);
      });
      entries += page.length;
    }
  } finally {
    await store.close();
  }
  await mkdir(metadata, { recursive: true, mode: 0o700 });
  await rm(join(metadata, "lock.mdb"), { force: true });
  for (const name of ["closed", "data.mdb"])
    await rename(join(draft, name), join(metadata, name)).catch(absentSeal(name));
  await rm(draft, { recursive: true, force: true });
  for (const folder of [metadata, dirname(metadata)]) await syncFolder(folder);
  return entries;
}

/** The seal may be missing; it only saves a check. */
const absentSeal = (name: string) => (error: NodeJS.ErrnoException) => {
  if (name !== "closed" || error.code !== "ENOENT") throw error;
};
