/** Copies the content of a shared store into a new repo. */

import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Journal } from "../../content/mfs/journal.ts";
import { copyTrees, treesOf } from "../../content/mfs/key_trees.ts";
import { KeyFiles } from "../../storage/keystore/key_files.ts";
import { identityOf, readConfig } from "../../storage/repo/config_document.ts";
import type { StoreKind } from "../../storage/repo/datastore.ts";
import { isRepo, lockFolders, newConfig } from "../../storage/repo/repo.ts";
import { keysPrefix } from "../../storage/shared/keys.ts";
import type { SharedStoreSettings } from "../../storage/shared/settings.ts";
import { counted } from "../../util/counted.ts";
import { NodeError } from "../../util/errors.ts";
import { copyKeys, makeCopy } from "../migrate.ts";
import { type CopyOptions, copyBlocks, copyEntries, removeAll } from "../open_stores/copy.ts";
import { type Notice, openMetadata, type Stores } from "../open_stores/engines.ts";
import type { SharedStores } from "../open_stores/open_shared.ts";
import { withSharedStores } from "../open_stores/visit_shared.ts";
import { mergeKeys, refuseOtherKeys } from "./conflicts.ts";
import { mergeMetadata } from "./merge_metadata.ts";
import { type Migrated, requireBlocks, requireEntries } from "./migrated.ts";
import { sourceOf } from "./source.ts";

export interface FromSharedOptions extends CopyOptions {
  /** Kind of the new repo's stores; segments by default. */
  readonly kind?: StoreKind | undefined;
  /**
   * A repo whose configuration, identity and keys the new one gets, together with the files that
   * its host has written through mounts. By default, the new repo gets a new identity.
   */
  readonly like?: string | undefined;
  /** Whether to read every block in the new repo at the end, and compare it with its hash. */
  readonly verify?: boolean | undefined;
}

/**
 * Copies blocks, pins, files, published names, keys for names (if hosts share them) and the state
 * of modules into a new folder. Hosts may use the store meanwhile: the copy is of a moment towards
 * the end. The folder becomes a repo only when everything has been copied; after an interruption,
 * the same call continues.
 * @throws NodeError STORE_UNAVAILABLE, SESSION_LOST, LOCK_LOST, STORE_FULL; if `to` has other
 * content; the signal's reason when it aborts
 */
export async function migrateFromShared(
  settings: SharedStoreSettings,
  to: string,
  { kind = "segments", like, ...options }: FromSharedOptions = {},
): Promise<Migrated> {
  const path = resolve(to);
  const { onNotice = () => {} } = options;
  if (like !== undefined && !(await isRepo(like))) throw new NodeError("REPO_NOT_FOUND", `there is no repo ${like}`);
  const lock = await lockFolders([path]);
  try {
    return await withSharedStores(
      settings,
      (shared, folder) =>
        makeCopy({ path, kind, from: settings.s3, onNotice }, async (stores) => {
          await warnOfUncopiedKeys(shared, onNotice);
          if (like !== undefined && shared.keys !== undefined)
            await refuseOtherKeys(shared.keys, new KeyFiles(join(like, "keystore")));
          const config = like === undefined ? undefined : readConfig(await readFile(join(like, "config"), "utf8"));
          const host = config === undefined ? undefined : identityOf(config.typed).PeerID;
          const result = await copyContent(shared, stores, join(folder, "source"), { ...options, host });
          const finish = async () => {
            if (like !== undefined) await copyKeys(like, path);
            if (shared.keys !== undefined) await mergeKeys(shared.keys, new KeyFiles(join(path, "keystore")));
            return config ?? newConfig();
          };
          return { result, finish };
        }),
      { onNotice },
    );
  } finally {
    await lock.release();
  }
}

interface Options extends Omit<FromSharedOptions, "kind" | "like"> {
  /** Peer ID of the host whose mounts the new repo gets. */
  readonly host: string | undefined;
}

/** `folder` is for a copy of the shared metadata. */
async function copyContent(from: SharedStores, to: Stores, folder: string, options: Options): Promise<Migrated> {
  const { onProgress, onNotice = () => {}, signal, verify = false, host } = options;
  const { blocks, metadata, collections, shared, keys } = from;
  await removeAll(to.metadata, "");
  // Garbage collection may remove blocks during this first pass. Only the blocks of the second
  // pass, with garbage collection paused, are required.
  const first = await copyBlocks(blocks, to.blocks, { onProgress, signal, onMissing: requireGone });
  const copy = await openMetadata({ metadata: folder }, onNotice);
  try {
    const { source, copied, upTo } = await collections.paused(async () => {
      await copyEntries(metadata, copy, { signal });
      const upTo = shared.applied;
      const source = await sourceOf(blocks, copy);
      return {
        source,
        upTo,
        copied: await copyBlocks(source.blocks, to.blocks, { bytes: first.bytes, onProgress, signal }),
      };
    }, signal);
    const listed = blocks.condemnable.stored(upTo);
    await requireBlocks(listed, to.blocks, { total: copied.blocks, verify, onProgress, signal });
    const merged = await mergeMetadata(source.metadata, to.metadata, { onConflict: "replace", signal });
    if (source.root !== undefined) await new Journal(to.metadata).replace(source.root);
    if (host !== undefined) await copyTrees(treesOf(copy, host), treesOf(to.metadata));
    await requireEntries(copy, to.metadata);
    return { ...copied, ...merged, keys: (await keys?.names())?.length ?? 0, files: source.root };
  } finally {
    await copy.close();
  }
}

function requireGone(_cid: unknown, error: unknown): undefined {
  if (!NodeError.is(error) || error.code !== "BLOCKSTORE_NOT_FOUND") throw error;
}

async function warnOfUncopiedKeys({ keys, metadata }: SharedStores, onNotice: Notice): Promise<void> {
  if (keys !== undefined) return;
  const { length } = await Array.fromAsync(metadata.range({ prefix: keysPrefix }));
  if (length > 0)
    onNotice(
      `${counted(length, "key for names is", "keys for names are")} not copied: only a node_store with their keys_secret can read them`,
    );
}
