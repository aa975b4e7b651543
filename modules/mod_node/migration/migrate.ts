/** Copies a repo into a new one that stores blocks and metadata in other engines. */
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Namespace } from "../content/mfs/namespace.ts";
import { BlockService } from "../storage/blockstore/block_service.ts";
import { moveReferences } from "../storage/filestore/move.ts";
import { syncFolder, writeAtomically } from "../storage/repo/atomic_file.ts";
import { changedTo, readConfig } from "../storage/repo/config_document.ts";
import { resolveStorePaths, type StoreKind, storePaths } from "../storage/repo/datastore.ts";
import { defaultSpec, flatfsSpec } from "../storage/repo/defaults.ts";
import { type JsonObject, setAt } from "../storage/repo/json.ts";
import { lockFiles } from "../storage/repo/lock.ts";
import { copyMark, isRepo, lockFolders, type NewConfig, openRepo, type Repo, writeRepo } from "../storage/repo/repo.ts";
import { SharedLock } from "../util/async/shared_lock.ts";
import { failure } from "../util/errors.ts";
import { NodeLog } from "../util/log.ts";
import { repoVersion } from "../util/version.ts";
import { exportMetadata } from "./from_go_ipfs/export_metadata.ts";
import { type CopyOptions, type CopyProgress, copyStores } from "./open_stores/copy.ts";
import { type Notice, openBlocks, openMetadata, type Stores } from "./open_stores/engines.ts";

export type MigrationProgress = CopyProgress;

export interface MigrationOptions extends CopyOptions {
  /** Kind of the new stores; by default, the kind that the old repo does not have. */
  readonly kind?: StoreKind | undefined;
}

const specs: Readonly<Record<StoreKind, JsonObject>> = { segments: defaultSpec, flatfs: flatfsSpec };

/** Files next to the configuration; they may be missing. */
const [keystore, swarmKey] = ["keystore", "swarm.key"] as const;

/**
 * Copies configuration, keys, blocks, pins, MFS and filestore references of the repo in the folder
 * `from` into the folder `to`. The old repo stays unchanged. The new folder becomes a repo only
 * when everything has been copied; after an interruption, the same call continues. The new repo has
 * the version of the old one. With the kind `flatfs`, go-ipfs 0.9.0 can use it as well, or Kubo
 * 0.43 if the old repo is Kubo's.
 * @throws NodeError REPO_LOCKED, DATABASE_IN_USE, DATABASE_DAMAGED, BLOCK_CORRUPT, STORE_FULL; if
 * `to` has other content; the signal's reason when it aborts
 */
export async function migrateRepo(
  from: string,
  to: string,
  { kind, ...options }: MigrationOptions = {},
): Promise<MigrationProgress> {
  const old = await openRepo(from, { init: false });
  try {
    const path = resolve(to);
    const lock = await lockFolders([path]);
    try {
      const isOwn = old.stores.kind === "segments" && old.stores.foreign === undefined;
      const wanted = kind ?? (isOwn ? "flatfs" : "segments");
      return await copyRepo(old, path, wanted, options);
    } finally {
      await lock.release();
    }
  } finally {
    await old.close();
  }
}

async function copyRepo(old: Repo, path: string, kind: StoreKind, options: CopyOptions): Promise<MigrationProgress> {
  const { onNotice = () => {} } = options;
  return makeCopy(
    { path, kind, from: old.path, version: old.diskVersion, onNotice },
    async (stores, metadataFolder) => {
      const progress = await copyStores(old.stores, stores, metadataFolder, options);
      await moveReferences(stores, { from: dirname(old.path), to: dirname(path), onNotice });
      await settleRoot(stores, () => old.config.value("Experimental.ShardingEnabled"));
      const finish = async () => {
        await copyKeys(old.path, path);
        return readConfig(await readFile(join(old.path, "config"), "utf8"));
      };
      return { result: progress, finish };
    },
  );
}

interface Copy {
  /** An absolute path; the caller holds its lock. */
  readonly path: string;
  readonly kind: StoreKind;
  /** Name of the source, which is recorded in the folder until the copy is complete. */
  readonly from: string;
  /** Version of the new repo; by default, the version that this node creates. */
  readonly version?: string | undefined;
  readonly onNotice: Notice;
}

interface Filled<T> {
  readonly result: T;
  /**
   * Writes the remaining files of the repo and returns its configuration. The stores are closed by
   * then.
   */
  readonly finish: () => Promise<NewConfig>;
}

/**
 * Creates a repo with the content that `fill` adds to its stores. The folder becomes a repo only
 * when everything is there.
 */
export async function makeCopy<T>(
  { path, kind, from, version = repoVersion, onNotice }: Copy,
  fill: (stores: Stores, metadataFolder: string) => Promise<Filled<T>>,
): Promise<T> {
  await mark(path, from);
  const paths = resolveStorePaths(path, storePaths(specs[kind], version));
  const blocks = await openBlocks(paths, onNotice);
  let filled: Filled<T>;
  try {
    const metadata = await openMetadata(paths, onNotice);
    try {
      filled = await fill({ blocks, metadata }, paths.metadata);
      const { foreign, namedAfter } = paths;
      if (foreign !== undefined) {
        await rm(foreign.path, { recursive: true, force: true });
        await exportMetadata(foreign.path, metadata, namedAfter);
      }
    } finally {
      await metadata.close();
    }
  } finally {
    await blocks.close();
  }
  const config = await filled.finish();
  await writeRepo(path, changedTo(config, setAt(config.typed, "Datastore.Spec", specs[kind])), version);
  await rm(join(path, copyMark));
  return filled.result;
}

/**
 * Marks the folder as an incomplete copy of that repo.
 * @throws NodeError if the folder has other content
 */
async function mark(path: string, from: string): Promise<void> {
  const file = join(path, copyMark);
  const marked = await readFile(file, "utf8").catch(() => undefined);
  if (marked === from) return;
  if (marked !== undefined)
    throw failure("MIGRATION_REFUSED", { reason: `${path} is half of a copy of ${marked}, not of ${from}` });
  if (await isRepo(path))
    throw failure("REPO_EXISTS", { reason: `${path} is a repo already: name a folder that is not there yet` });
  if ((await readdir(path)).some((name) => !lockFiles.includes(name)))
    throw failure("MIGRATION_REFUSED", { reason: `${path} is not empty` });
  await writeAtomically(file, from, 0o600);
}

/**
 * Copies the current keys and removes those of an earlier attempt. The keys are durable when the
 * promise resolves.
 */
export async function copyKeys(from: string, to: string): Promise<void> {
  await rm(join(to, keystore), { recursive: true, force: true });
  await rm(join(to, swarmKey), { force: true });
  const entries = await readdir(join(from, keystore), { withFileTypes: true }).catch(absent);
  await mkdir(join(to, keystore), { mode: 0o700 });
  const names = (entries ?? []).filter((entry) => entry.isFile()).map(({ name }) => join(keystore, name));
  for (const name of [...names, swarmKey]) {
    const file = join(from, name);
    const content = await readFile(file).catch(absent);
    if (content !== undefined) await writeAtomically(join(to, name), content, (await stat(file)).mode & 0o777);
  }
  await syncFolder(to);
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/** Stores the MFS root with all changes, because go-ipfs does not know the journal. */
async function settleRoot({ blocks, metadata }: Stores, sharded: () => boolean): Promise<void> {
  const parts = { blocks: new BlockService(blocks), metadata, lock: new SharedLock(), sharded, log: new NodeLog() };
  await new Namespace(parts).roots();
  await blocks.sync();
}
