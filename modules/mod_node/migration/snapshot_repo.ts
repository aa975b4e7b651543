/** Takes a snapshot of a repo for a backup while the node keeps running. */
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

export interface SnapshotDeps {
  readonly repo: Repo;
  /** The block store itself, without the layers above it. */
  readonly blocks: BlockStore;
  readonly metadata: MetadataStore;
  /** Folder for a copy of the metadata. */
  readonly scratch: string;
  /**
   * Whether several hosts share blocks and metadata. A backup of a host then contains only the rest
   * of its repo.
   */
  readonly isShared: boolean;
}

/**
 * Takes a snapshot of configuration, keys, metadata and blocks at the moment of the call. It
 * contains each block that the metadata refers to, as after a power failure. The blocks remain
 * until `release`, even if garbage collection removes them. For a host of a shared store, it
 * contains only configuration and keys.
 * @throws NodeError for stores that are not files; errors of the stores; the signal's reason when
 * it aborts
 */
export async function snapshotRepo(
  { repo, blocks, metadata, scratch, isShared }: SnapshotDeps,
  signal: AbortSignal,
): Promise<BackupSnapshot> {
  if (isShared) return describe({ repo, files: await Array.fromAsync(plainFiles(repo)), release: () => undefined });
  if (blocks.takeSnapshot === undefined) throw failure("NOT_SUPPORTED", { reason: "its blocks are not in files" });
  // Waits until earlier writes are committed, so that the listing contains them.
  await metadata.transaction(() => undefined);
  // Nothing is awaited between these calls, so that metadata and blocks are of the same moment: a
  // listing shows the state at which its first entry is requested.
  const entries = metadata.range()[Symbol.asyncIterator]();
  const first = entries.next();
  const taking = blocks.takeSnapshot();
  const folder = join(scratch, `backup-${randomBytes(6).toString("hex")}`);
  const copy = join(folder, "metadata");
  const [snapshot, copied] = await Promise.allSettled([taking, copyOf(copy, first, entries, signal)]);
  const release = async () => {
    if (snapshot.status === "fulfilled") await snapshot.value.release();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    if (snapshot.status === "rejected") throw snapshot.reason;
    if (copied.status === "rejected") throw copied.reason;
    const files = await Array.fromAsync(plainFiles(repo));
    return describe({ repo, files, content: { snapshot: snapshot.value, copy }, release });
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * Copies the metadata to a file immediately: as long as the listing is open, the store cannot reuse
 * space.
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
 * Yields the files that a node reads when it starts, if they exist. For go-ipfs and Kubo, this
 * includes their own metadata.
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
    // Nobody writes these files while the repo is locked.
    if (name !== "LOCK") yield { path: file, mode: 0o600, read: (start) => createReadStream(file, { start }) };
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

interface RepoParts {
  readonly repo: Repo;
  readonly files: readonly PlainFile[];
  /** Undefined for a shared store. */
  readonly content?: {
    readonly snapshot: StoreSnapshot;
    /** The file with the metadata. */
    readonly copy: string;
  };
  release(): unknown;
}

function describe({ repo, files, content, release }: RepoParts): BackupSnapshot {
  const { path, stores, repoStores, identity } = repo;
  const folders: Record<string, string> = { repo: path };
  if (repoStores !== undefined) folders.data = dirname(stores.blocks);
  const locate = (file: string, own: string) => {
    const [name, folder] = Object.entries(folders).find(([, folder]) => isBelow(folder, file)) ?? [own, dirname(file)];
    folders[name] = folder;
    return { folder: name, path: relative(folder, file).split(sep).join("/") };
  };
  const keystore = { ...locate(`${join(path, "keystore")}`, "repo"), read: nothing };
  const blocks = locate(stores.blocks, "blocks");
  const metadata = locate(metadataToRestore(stores), "metadata");
  async function* all(): AsyncGenerator<BackupFile> {
    if (content !== undefined) {
      for await (const { name, isGrowing, state, read } of content.snapshot.files) {
        const file = `${blocks.path}/${name}`;
        yield { folder: blocks.folder, path: file, state, read, ...(isGrowing ? { growing: file } : {}) };
      }
      yield { ...metadata, is_lines: true, read: (start) => createReadStream(content.copy, { start }) };
    }
    yield { ...keystore, path: `${keystore.path}/` };
    for (const file of files) yield { ...file, ...locate(file.path, "datastore") };
  }
  const notes = [
    `It contains the identity ${identity.peerId} of a node: never run that node twice. If two run at the same time, peers reach either one, and each overwrites the names of the other.`,
  ];
  const references = (["Experimental.FilestoreEnabled", "Experimental.UrlstoreEnabled"] as const).filter((key) =>
    repo.config.value(key),
  );
  if (references.length > 0) notes.push("It does not contain the files and URLs that the filestore refers to.");
  if (content === undefined)
    notes.push(
      "It does not contain blocks, pins, files and names: they are in the shared store, which needs a backup of its own.",
    );
  return { folders, files: all(), ...(content && { bytes: content.snapshot.bytes }), notes, release };
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
