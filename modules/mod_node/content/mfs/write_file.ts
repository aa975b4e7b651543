/** Writes into a file of MFS. */

import { cumulativeSize } from "../../formats/dag_pb/dag_pb.ts";
import type { Chunker } from "../../formats/unixfs/chunker/chunker.ts";
import { encodeUnixfs } from "../../formats/unixfs/format.ts";
import type { ReadOptions } from "../../storage/blockstore/block_service.ts";
import type { PreemptibleBatch } from "../../storage/blockstore/preemptible_batch.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { failure } from "../../util/errors.ts";
import { type Built, buildNode, type CidSettings } from "../unixfs/build.ts";
import { fileSize, type UnixfsNode, unixfsNode } from "../unixfs/node.ts";
import { type ReadRange, readFile } from "../unixfs/read.ts";
import { ByteReader } from "./byte_reader.ts";
import { FileEditor } from "./file_editor.ts";
import { type FileEntry, Folder, isMissing, missing } from "./folder.ts";
import type { GcGuard } from "./gc_guard.ts";
import { lookup, lookupFolder } from "./lookup.ts";
import type { ChangeOptions, Namespace } from "./namespace.ts";
import { make } from "./operations.ts";
import { type NamespacePath, nameOf, parentOf } from "./path.ts";

export interface WriteFileOptions extends ChangeOptions {
  /** Offset of the first byte to write. A gap before it is filled with zeros. */
  readonly offset: number;
  /** Maximum number of bytes to read from the content. */
  readonly count: number | undefined;
  /** Create the file if it does not exist. */
  readonly create: boolean;
  /** Create missing parent directories. */
  readonly parents: boolean;
  /** Truncate the file first. */
  readonly truncate: boolean;
  /** Whether new leaves are raw blocks. By default they are in files of CID version 1. */
  readonly rawLeaves: boolean | undefined;
  /** Splits the appended content into chunks; by default of 256 KiB. */
  readonly chunker?: (() => Chunker) | undefined;
  /** Replace the root of a file that has one raw leaf by that leaf. */
  readonly joinsLeaf?: boolean | undefined;
  /** See `NewLeaves`. */
  readonly keepsLeaves?: boolean | undefined;
  readonly maxInline?: number | undefined;
  /** Settings of a new file and new directories; by default those of the parent directory. */
  readonly settings: CidSettings | undefined;
  /** With `parents`: change the settings of the parent directory if it exists. */
  readonly changesExisting?: boolean | undefined;
}

/**
 * Number of bytes from which on content is synced separately. Less content is synced together with
 * the change itself.
 */
const MAX_UNSYNCED = 256 * 1024;

const emptyFile = encodeUnixfs({ type: "File", filesize: 0 });

/** A file to write into: an existing one, or an empty one that is not in the tree yet. */
interface WriteTarget {
  readonly node: UnixfsNode;
  readonly isNew: boolean;
}

/**
 * Writes content into a file. Looks up the file before it calls `content`, and throws for invalid
 * targets then. The file changes when all content has arrived, and not at all if that fails: a new
 * file gets its name, missing parents and content in one step. Writers of one file wait for each
 * other. A writer on another host of a shared store does not wait, and replaces the file: then the
 * content goes into the file that the other host has left.
 */
export async function writeFile(
  files: Namespace,
  path: NamespacePath,
  content: () => Promise<AsyncIterable<Uint8Array>>,
  options: WriteFileOptions,
): Promise<void> {
  const { offset, count, signal } = options;
  if (offset < 0) throw failure("OPTION_INVALID", { reason: "cannot have negative write offset" });
  if (count !== undefined && count < 0) throw failure("OPTION_INVALID", { reason: "cannot have negative byte count" });
  const release = await files.writers.acquire(path.segments.join("/"), signal);
  try {
    await files.withGcGuard(signal, async (guard) => {
      let target: WriteTarget | undefined = await files.withTree(
        options,
        (root) => open(files, root, path, options),
        guard,
      );
      let source = async () => new ByteReader(await content(), count);
      for (; target !== undefined; ) {
        const { node, isNew }: WriteTarget = target;
        let bytes: ByteReader | undefined;
        const take = async () => (bytes = await source());
        const empty = isNew ? { cid: node.cid, size: cumulativeSize(node) } : undefined;
        const edited: Built | undefined = (await editFile(files, node, take, options, guard)) ?? empty;
        if (edited === undefined) break;
        const change: FileChange = { path, edited, target: { node, isNew }, ...options };
        target = await files.withTree(options, (root) => relink(files, root, change), guard);
        const range = { offset, length: bytes?.taken };
        source = async () => new ByteReader(await contentOf(files, edited, range, signal));
      }
      await files.afterChange(options);
    });
  } finally {
    release();
  }
}

/**
 * Finds the file, or makes an empty one for the entry that `relink` adds. @throws NodeError if the
 * entry could not be added
 */
async function open(
  files: Namespace,
  root: Folder,
  path: NamespacePath,
  { create, parents, settings, changesExisting }: WriteFileOptions,
): Promise<WriteTarget> {
  const above = path.trailingSlash ? path : parentOf(path);
  if (parents) await nearestFolder(root, above);
  const found = await lookup(root, path).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
  // The parents of a new file are created when it gets its name.
  const makesParents = parents && (found !== undefined || !create || path.trailingSlash);
  if (makesParents && above.segments.length > 0) {
    await make(files, root, above, { parents, settings, changesExisting });
  }
  if (found !== undefined) return { node: fileOf(path, found).node, isNew: false };
  if (path.trailingSlash && parents) throw notFile(path);
  if (!create) throw missing();
  const folder = parents ? await nearestFolder(root, above) : await lookupFolder(root, above);
  const made: Block[] = [];
  const built = await buildNode({ data: emptyFile, links: [] }, settings ?? folder.settings, (block) => {
    made.push(block);
  });
  await files.blocks.put(made);
  return { node: unixfsNode(built.cid, made[0]?.bytes ?? emptyFile) as UnixfsNode, isNew: true };
}

/**
 * Returns the last existing directory of a path. @throws NodeError if an entry of another kind is
 * on the path
 */
async function nearestFolder(root: Folder, { segments }: NamespacePath): Promise<Folder> {
  let folder = root;
  for (const [at, name] of segments.entries()) {
    if ((await folder.find(name)) === undefined) return folder;
    const found = await folder.child(name);
    if (!(found instanceof Folder)) throw failure("PARENT_NOT_A_DIRECTORY", { path: segments.slice(0, at).join("/") });
    folder = found;
  }
  return folder;
}

/**
 * Returns the file at a path and its size in bytes. @throws NodeError if it does not exist or is
 * not a file
 */
export async function fileAt(
  files: Namespace,
  path: NamespacePath,
  options: ReadOptions,
): Promise<{ readonly node: UnixfsNode; readonly size: number }> {
  const { node } = fileOf(path, await files.withTree(options, (root) => lookup(root, path)));
  return { node, size: fileSize(node) };
}

const notFile = ({ text }: NamespacePath) => failure("NOT_A_FILE", { reason: `${text} was not a file` });

function fileOf(path: NamespacePath, found: Folder | FileEntry): FileEntry {
  if (found instanceof Folder) throw notFile(path);
  const { type } = found.node.unixfs;
  if (type === "Symlink") throw failure("UNIXFS_TYPE_UNSUPPORTED", { reason: "symlinks not yet supported" });
  if (type !== "File" && type !== "Raw")
    throw failure("UNIXFS_TYPE_UNSUPPORTED", { reason: "unsupported fsnode type for 'file'" });
  return found;
}

type EditOptions = Pick<
  WriteFileOptions,
  "offset" | "truncate" | "rawLeaves" | "chunker" | "joinsLeaf" | "keepsLeaves" | "maxInline" | "signal" | "offline"
>;

/**
 * Builds the edited file. `guard` protects the old and the new blocks. Returns undefined if nothing
 * changes. `content` is closed in any case.
 */
export async function editFile(
  files: Namespace,
  file: UnixfsNode,
  content: () => Promise<ByteReader>,
  options: EditOptions,
  guard: GcGuard,
): Promise<Built | undefined> {
  guard.protect(() => [file.cid]);
  return guard.withBatch(files.blocks, async (batch) => {
    const reader = await content();
    return editInBatch(files, file, reader, options, guard, batch).finally(() => reader.close());
  });
}

async function editInBatch(
  files: Namespace,
  file: UnixfsNode,
  content: ByteReader,
  { offset, truncate, joinsLeaf, rawLeaves, chunker, keepsLeaves, maxInline, ...options }: EditOptions,
  guard: GcGuard,
  batch: PreemptibleBatch,
): Promise<Built | undefined> {
  const read = files.reader(options);
  // Blocks that are read again may not be stored yet.
  const readBack: typeof read = async (cid) => {
    await batch.flush();
    return read(cid);
  };
  const leaves = { rawLeaves, keepsLeaves, chunker, maxInline, signal: options.signal };
  const editor = new FileEditor(file, readBack, batch.add, leaves);
  guard.protect(() => editor.cids());
  const cut = truncate && editor.size > 0;
  if (cut) await editor.truncate();
  const gap = offset > editor.size;
  await editor.extend(offset);
  const filled = await content.more();
  if (!cut && !gap && !filled) return undefined;
  await editor.overwrite(offset, content);
  if (await content.more()) await editor.append(content.rest());
  const edited = await editor.finish(joinsLeaf);
  // Content that may not fit on the disk is made durable before the file refers to it. So a write
  // that fails changes nothing.
  await batch.flushThen(async () => {
    if (batch.total > MAX_UNSYNCED) await files.blocks.store.sync();
  });
  return edited;
}

/** Yields the content of a file that was built here. */
async function contentOf(files: Namespace, { cid }: Built, range: ReadRange, signal: AbortSignal | undefined) {
  const read = files.reader({ offline: true, signal });
  return readFile(unixfsNode(cid, await read(cid)) as UnixfsNode, read, range);
}

interface FileChange extends Pick<WriteFileOptions, "parents" | "settings" | "changesExisting"> {
  readonly path: NamespacePath;
  readonly target: WriteTarget;
  readonly edited: Built;
}

/**
 * Replaces the old file by the edited one, or adds a new one. Returns the file that another host of
 * a shared store has put there meanwhile, if any.
 */
async function relink(
  files: Namespace,
  root: Folder,
  { path, target: { node, isNew }, edited: { cid, size }, parents, settings, changesExisting }: FileChange,
): Promise<WriteTarget | undefined> {
  const above = parentOf(path);
  if (isNew && parents && above.segments.length > 0) {
    await make(files, root, above, { parents, settings, changesExisting });
  }
  const folder = await lookupFolder(root, above);
  const link = await folder.find(nameOf(path));
  if (link !== undefined && (isNew || !link.cid.equals(node.cid))) {
    if (files.isShared) return { node: fileOf(path, await folder.child(nameOf(path))).node, isNew: false };
    throw failure("FILE_REPLACED", { path: path.text });
  }
  if (isNew) await folder.add({ name: nameOf(path), cid, size });
  else await folder.replace({ name: nameOf(path), cid, size });
  return undefined;
}
