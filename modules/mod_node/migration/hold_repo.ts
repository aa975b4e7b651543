/** A repo as it is at one moment, for backups, while the node goes on. */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import type { BackupFile, BackupSnapshot } from "../../../core/types.ts";
import type { BlockStore, StoreSnapshot } from "../storage/blockstore/store.ts";
import { isCopied } from "../storage/metadata/copied.ts";
import { type Entry, writeCopy } from "../storage/metadata/copy_file.ts";
import type { MetadataStore } from "../storage/metadata/store.ts";
import { copyPrefix } from "../storage/repo/config.ts";
import type { Repo } from "../storage/repo/repo.ts";
import { failure } from "../util/errors.ts";
import { metadataToRestore } from "./open_stores/engines.ts";

export interface HoldDeps {
  readonly repo: Repo;
  /** The engine itself. */
  readonly blocks: BlockStore;
  readonly metadata: MetadataStore;
  /** Folder for a copy of the metadata. */
  readonly scratch: string;
  /**
   * Blocks and metadata are in a store of several hosts: a backup of one of them has the rest of
   * its repo.
   */
  readonly isShared: boolean;
}

/**
 * Configuration, keys, metadata and blocks at the moment at which it begins: each block that the
 * metadata needs is there, as after a power failure. The blocks are held until `release`, also from
 * a collection of garbage. Of a host of a shared store only configuration and keys.
 *
 * @throws NodeError for stores that are not files; of the stores; the signal's reason when it
 * aborts
 */
export async function holdRepo(
  { repo, blocks, metadata, scratch, isShared }: HoldDeps,
  signal: AbortSignal,
): Promise<BackupSnapshot> {
  if (isShared) return describe({ repo, files: await Array.fromAsync(plainFiles(repo)), release: () => undefined });
  if (blocks.takeSnapshot === undefined) throw failure("MIGRATION_REFUSED", { reason: "its blocks are not in files" });
  // It resolves when everything before it is committed, and so seen by the listing.
  await metadata.transaction(() => undefined);
  // Both are of the same moment, as nothing is awaited between: a listing has its snapshot from its
  // first entry on.
  const entries = metadata.range()[Symbol.asyncIterator]();
  const first = entries.next();
  const holding = blocks.takeSnapshot();
  const folder = join(scratch, `backup-${randomBytes(6).toString("hex")}`);
  const copy = join(folder, "metadata");
  const [held, copied] = await Promise.allSettled([holding, copyOf(copy, first, entries, signal)]);
  const release = async () => {
    if (held.status === "fulfilled") await held.value.release();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    if (held.status === "rejected") throw held.reason;
    if (copied.status === "rejected") throw copied.reason;
    const files = await Array.fromAsync(plainFiles(repo));
    return describe({ repo, files, content: { held: held.value, copy }, release });
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * Copies the metadata to a file at once: a listing that stays open keeps its store from using space
 * again.
 */
async function copyOf(
  path: string,
  first: Promise<IteratorResult<Entry>>,
  rest: AsyncIterator<Entry>,
  signal: AbortSignal,
): Promise<void> {
  async function* all(): AsyncGenerator<Entry> {
    try {
      for (let next = await first; next.done !== true; next = await rest.next()) {
        signal.throwIfAborted();
        if (isCopied(next.value[0])) yield next.value;
      }
    } finally {
      await rest.return?.();
    }
  }
  const entries = all();
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const header = { id: randomBytes(12).toString("hex"), made: new Date().toISOString() };
    await writeCopy(path, header, entries);
  } finally {
    await first.catch(() => undefined);
    await entries.return(undefined);
    await rest.return?.();
  }
}

interface PlainFile {
  readonly path: string;
  readonly mode: number;
  read(from: number): AsyncIterable<Uint8Array>;
}

/**
 * Files that a node reads when it starts, as far as they are there; of go-ipfs and Kubo, their own
 * metadata as well.
 */
async function* plainFiles({ path, stores: { foreign } }: Repo): AsyncGenerator<PlainFile> {
  const copies = (await namesIn(path)).filter((name) => name.startsWith(copyPrefix));
  const keys = (await namesIn(join(path, "keystore"))).map((name) => join("keystore", name));
  const denylists = (await namesIn(join(path, "denylists"))).filter((name) => name.endsWith(".deny"));
  const lists = denylists.map((name) => join("denylists", name));
  for (const name of ["version", "datastore_spec", "swarm.key", "config", ...copies, ...keys, ...lists]) {
    const file = join(path, name);
    // A key may be removed at any moment.
    const [content, found] = await Promise.all([readFile(file).catch(absent), stat(file).catch(absent)]);
    if (content === undefined || found === undefined) continue;
    yield { path: file, mode: found.mode, read: (from) => once(content.subarray(from)) };
  }
  if (foreign === undefined) return;
  for (const name of await namesIn(foreign.path)) {
    const file = join(foreign.path, name);
    // Nobody writes there while the repo is locked.
    if (name !== "LOCK") yield { path: file, mode: 0o600, read: (start) => createReadStream(file, { start }) };
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

interface Held {
  readonly repo: Repo;
  readonly files: readonly PlainFile[];
  /** Undefined where others keep it. */
  readonly content?: {
    readonly held: StoreSnapshot;
    /** The file with the metadata. */
    readonly copy: string;
  };
  release(): unknown;
}

function describe({ repo, files, content, release }: Held): BackupSnapshot {
  const { path, stores, repoStores, identity } = repo;
  const folders: Record<string, string> = { repo: path };
  if (repoStores !== undefined) folders.data = dirname(stores.blocks);
  const place = (file: string, own: string) => {
    const [name, folder] = Object.entries(folders).find(([, folder]) => isBelow(folder, file)) ?? [own, dirname(file)];
    folders[name] = folder;
    return { folder: name, path: relative(folder, file).split(sep).join("/") };
  };
  const keystore = { ...place(`${join(path, "keystore")}`, "repo"), read: nothing };
  const blocks = place(stores.blocks, "blocks");
  const metadata = place(metadataToRestore(stores), "metadata");
  async function* all(): AsyncGenerator<BackupFile> {
    if (content !== undefined) {
      for await (const { name, isGrowing, state, read } of content.held.files) {
        const file = `${blocks.path}/${name}`;
        yield { folder: blocks.folder, path: file, state, read, ...(isGrowing ? { growing: file } : {}) };
      }
      yield { ...metadata, is_lines: true, read: (start) => createReadStream(content.copy, { start }) };
    }
    yield { ...keystore, path: `${keystore.path}/` };
    for (const file of files) yield { ...file, ...place(file.path, "datastore") };
  }
  const notes = [
    `It has the identity ${identity.peerId} of a node: never run that node twice. While both run, peers reach now the one, now the other, and their names overwrite each other.`,
  ];
  const references = (["Experimental.FilestoreEnabled", "Experimental.UrlstoreEnabled"] as const).filter((key) =>
    repo.config.value(key),
  );
  if (references.length > 0) notes.push("Files and URLs that the filestore only refers to are not in it.");
  if (content === undefined)
    notes.push(
      "Blocks, pins, files and names are not in it: they are in the shared store, which needs a backup of its own.",
    );
  return { folders, files: all(), ...(content && { bytes: content.held.bytes }), notes, release };
}

function isBelow(folder: string, file: string): boolean {
  const path = relative(folder, file);
  return path !== ".." && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  if (content.length > 0) yield content;
}
