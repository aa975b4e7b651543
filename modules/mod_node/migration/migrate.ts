/** Copies a repo into one that keeps its blocks and metadata in other engines. */
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
  /** Default: the kind that the old repo does not have. */
  readonly kind?: StoreKind | undefined;
}

const specs: Readonly<Record<StoreKind, JsonObject>> = { segments: defaultSpec, flatfs: flatfsSpec };

/** Files beside the configuration; they may be missing. */
const [keystore, swarmKey] = ["keystore", "swarm.key"] as const;

/**
 * Copies configuration, keys, blocks, pins, MFS and filestore references of the repo in the folder
 * `from` into the folder `to`. The old repo is not changed. The new folder is not a repo before
 * everything is there; after an interruption the same call continues. A new repo has the version of
 * the old one: of the kind `flatfs` it can be used by go-ipfs 0.9.0 as well, or by Kubo 0.43 where
 * the old one was of Kubo.
 *
 * @throws NodeError REPO_LOCKED, DATABASE_IN_USE, DATABASE_DAMAGED, BLOCK_CORRUPT, STORE_FULL; when
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
  /** An absolute path; its lock is held. */
  readonly path: string;
  readonly kind: StoreKind;
  /** What is copied, as it is named in the folder until it is complete. */
  readonly from: string;
  /** Of the repo; by default that of the repos that this node makes. */
  readonly version?: string | undefined;
  readonly onNotice: Notice;
}

interface Filled<T> {
  readonly result: T;
  /** Writes what else the repo has, and gives its configuration. The stores are closed by then. */
  readonly finish: () => Promise<NewConfig>;
}

/**
 * Makes a repo with what `fill` puts into its stores. The folder is not a repo before everything is
 * there.
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
 * Marks the folder as an incomplete copy of that repo. @throws NodeError when it has other content
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

/** Copies the present keys, and none of an earlier attempt; durable when it resolves. */
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

/** Stores the root of MFS with all changes: go-ipfs does not know the journal. */
async function settleRoot({ blocks, metadata }: Stores, sharded: () => boolean): Promise<void> {
  const parts = { blocks: new BlockService(blocks), metadata, lock: new SharedLock(), sharded, log: new NodeLog() };
  await new Namespace(parts).roots();
  await blocks.sync();
}
