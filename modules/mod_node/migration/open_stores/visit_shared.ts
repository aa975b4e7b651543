/**
 * Maintains a shared store without a repo: joins it temporarily as another host, with caches in a
 * temporary folder.
 */
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HostTree, hostTrees, removeTrees, treesOf } from "../../content/mfs/key_trees.ts";
import { resolveStorePaths } from "../../storage/repo/datastore.ts";
import { createIdentity, readIdentity } from "../../storage/repo/identity.ts";
import { lockFolders } from "../../storage/repo/repo.ts";
import type { SegmentFault } from "../../storage/shared/segments/verify.ts";
import type { SharedStoreSettings } from "../../storage/shared/settings.ts";
import { inspectDatabase } from "../../storage/shared/sql/inspect.ts";
import { failure } from "../../util/errors.ts";
import { openSharedStores, type SharedStores, withPassword } from "./open_shared.ts";
import { unfinishedMigrations } from "./unfinished.ts";

export interface SharedStoreStat {
  readonly segments: number;
  readonly blocks: number;
  /** Size of the segments in the object store. */
  readonly bytes: number;
  /** Part of `bytes` that stored blocks take. Merging segments frees the rest. */
  readonly live: number;
  /** Number of the last commit in the log. */
  readonly position: number;
  /** Number of hosts that have a session, not counting this one. */
  readonly hosts: number;
  /** Folders of repos that are only partly copied into this store. */
  readonly unfinished: readonly string[];
}

export interface SharedStoreVisit {
  stat(): Promise<SharedStoreStat>;
  /**
   * Yields missing and damaged segments. With `read`, it also compares every block with its hash.
   */
  verify(options?: { readonly read?: boolean; readonly signal?: AbortSignal }): AsyncIterable<SegmentFault>;
  /**
   * Returns the keys of objects whose hosts ended before they recorded them in the log; `remove`
   * deletes these objects.
   */
  orphans(options?: { readonly remove?: boolean; readonly signal?: AbortSignal }): Promise<readonly string[]>;
  /**
   * Returns the trees that hosts have written through their mounts, one per key. Garbage collection
   * retains them.
   */
  mounts(): Promise<readonly HostTree[]>;
  /**
   * Removes the trees of the host with this peer ID, which will not return, and returns them.
   * @throws NodeError if that host is running
   */
  removeMounts(host: string): Promise<readonly HostTree[]>;
}

export interface VisitOptions {
  readonly onNotice?: ((sentence: string) => void) | undefined;
  /** Parent of the temporary folder, which needs about 100 bytes for each block of the store. */
  readonly temporary?: string | undefined;
}

/** Maximum size of the object cache. It is small, because a visit reads most objects only once. */
const MAX_CACHE = 256 * 2 ** 20;

/**
 * Opens a shared store for maintenance; hosts may run meanwhile. It needs no secret for keys.
 * @throws NodeError STORE_UNAVAILABLE; errors that say which setting is wrong
 */
export function visitSharedStore<T>(
  settings: SharedStoreSettings,
  use: (visit: SharedStoreVisit) => Promise<T>,
  options: VisitOptions = {},
): Promise<T> {
  const runs = async (host: string) => {
    const { tables } = await inspectDatabase(await withPassword(settings), []);
    return tables?.hosts.some(({ peer, isAlive }) => peer === host && isAlive) ?? true;
  };
  const visit = ({ blocks, shared, metadata }: SharedStores) =>
    use({
      async stat() {
        const { segments, bytes, live } = await blocks.upkeep.metrics();
        const { blocks: count } = await blocks.stat();
        const hosts = (await shared.sessions()).filter((session) => session !== shared.session).length;
        const unfinished = await unfinishedMigrations(metadata);
        return { segments, blocks: count, bytes, live, position: shared.applied, hosts, unfinished };
      },
      verify: (options) => blocks.upkeep.verify(options),
      orphans: ({ remove = false, signal } = {}) =>
        remove ? blocks.upkeep.deleteOrphans(signal) : blocks.upkeep.orphans(signal),
      mounts: () => hostTrees(metadata),
      async removeMounts(host) {
        if (await runs(host))
          throw failure("MIGRATION_REFUSED", { reason: `${host} runs: remove what is below its /ipns there` });
        const found = (await hostTrees(metadata)).filter((tree) => tree.host === host);
        if (found.length > 0) await removeTrees(treesOf(metadata, host));
        return found;
      },
    });
  return withSharedStores({ ...settings, keys_secret: undefined }, visit, options);
}

/**
 * Passes the opened stores to `use`. `folder` is temporary.
 * @throws as `visitSharedStore`
 */
export async function withSharedStores<T>(
  settings: SharedStoreSettings,
  use: (stores: SharedStores, folder: string) => Promise<T>,
  { onNotice, temporary = tmpdir() }: VisitOptions = {},
): Promise<T> {
  await removeLeftBehind(temporary);
  const folder = await mkdtemp(join(temporary, PREFIX));
  const lock = await lockFolders([folder]);
  try {
    const identity = readIdentity(await createIdentity());
    const stores = resolveStorePaths(folder, { kind: "segments", blocks: "segments", metadata: "metadata" });
    const cache = Math.min(settings.cache ?? MAX_CACHE, MAX_CACHE);
    const opened = await openSharedStores(
      { stores, identity },
      { ...settings, cache, cache_path: folder },
      { onNotice },
    );
    try {
      return await use(opened, folder);
    } finally {
      for (const store of [opened.blocks, opened.metadata, opened.hostMetadata]) await store?.close().catch(() => {});
      await opened.close?.();
    }
  } finally {
    await lock.release();
    await rm(folder, { recursive: true, force: true });
  }
}

const PREFIX = "modhost-store-";
/**
 * Milliseconds after which a folder without a lock counts as abandoned; a running visit has locked
 * its folder by then.
 */
const MAX_UNLOCKED_MS = 60_000;

/** Removes the folders of visits that were killed. */
async function removeLeftBehind(temporary: string): Promise<void> {
  for (const name of await readdir(temporary)) {
    const folder = join(temporary, name);
    if (!name.startsWith(PREFIX) || Date.now() - (await madeAt(folder)) < MAX_UNLOCKED_MS) continue;
    // Locking fails if the folder is in use or belongs to another user.
    const lock = await lockFolders([folder]).catch(() => undefined);
    if (lock === undefined) continue;
    await rm(folder, { recursive: true, force: true });
    await lock.release().catch(() => {});
  }
}

const madeAt = (folder: string): Promise<number> =>
  stat(folder).then(
    ({ mtimeMs }) => mtimeMs,
    () => Date.now(),
  );
