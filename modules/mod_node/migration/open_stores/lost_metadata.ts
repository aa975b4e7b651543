/**
 * What happens when a store has blocks, and its metadata is gone: nobody may collect garbage by
 * what is left.
 */

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

/** Refuse, put the copy back, or begin without pins, files and names. */
export type LostMetadata = "refuse" | "restore" | "none";

export interface LostMetadataOptions {
  readonly lostMetadata?: LostMetadata | undefined;
  readonly onNotice: Notice;
}

/** Entries in one transaction. */
const MAX_BATCH = 4096;

/**
 * To be called before the metadata is opened, which makes it when it is missing.
 *
 * @throws NodeError METADATA_LOST with what can be done; for a copy that is damaged
 */
export async function settleLostMetadata(
  paths: StorePaths,
  blocks: BlockStore,
  { lostMetadata = "refuse", onNotice }: LostMetadataOptions,
): Promise<void> {
  const { metadata } = paths;
  await takeRestored(paths, onNotice);
  if (await isKept(join(metadata, "data.mdb"))) return;
  const path = metadataCopy(paths);
  const copy = await copyHeader(path);
  // A repo of go-ipfs or Kubo has its pins in another database, and no metadata before this node
  // opens it.
  const isFirst = copy === undefined && paths.foreign !== undefined;
  if (isFirst || (await isEmpty(blocks))) return;
  if (lostMetadata === "none") {
    onNotice(`${metadata} was lost: nothing is pinned, and a collection of garbage removes every block`);
    // A copy of what was before is kept: it is not written over by that of nothing.
    if (copy !== undefined) await rename(path, `${path}.lost`);
    return;
  }
  if (copy !== undefined && lostMetadata === "restore") {
    const entries = await restore(path, paths, onNotice);
    onNotice(
      `${metadata} was lost: ${counted(entries, "entry was", "entries were")} put back from the copy of ${copy.made}; later changes are gone`,
    );
    return;
  }
  throw failure("METADATA_LOST", { metadata, blocks: paths.blocks, remedy: remedyFor(copy?.made, path) });
}

/**
 * What a backup was restored from becomes the metadata, once; the file that it came in goes when
 * that is done.
 */
async function takeRestored(paths: StorePaths, onNotice: Notice): Promise<void> {
  const { metadata } = paths;
  const restored = metadataToRestore(paths);
  const found = await copyHeader(restored);
  if (found === undefined) return;
  if (!(await isKept(join(metadata, "data.mdb")))) {
    const entries = await restore(restored, paths, onNotice);
    onNotice(`${metadata} is made from a backup of ${found.made}: ${counted(entries, "entry", "entries")}`);
  }
  await rm(restored);
  await syncFolder(dirname(restored));
}

async function isKept(file: string): Promise<boolean> {
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

/** All of it or nothing: the store takes its place when it is complete. */
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

/** The seal only saves a check. */
const absentSeal = (name: string) => (error: NodeJS.ErrnoException) => {
  if (name !== "closed" || error.code !== "ENOENT") throw error;
};
