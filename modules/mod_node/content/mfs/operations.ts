/** Operations on MFS. Invalid arguments are rejected as in the reference. */
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { cumulativeSize } from "../../formats/dag_pb/dag_pb.ts";
import { encodeUnixfs, type ModeAndTime } from "../../formats/unixfs/format.ts";
import type { ReadOptions } from "../../storage/blockstore/block_service.ts";
import { failure, NodeError, reworded } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { type BlockSink, type Built, buildNode, type CidSettings, defaultCid } from "../unixfs/build.ts";
import { duplicateEntry } from "../unixfs/directory.ts";
import { type UnixfsNode, unixfsNode } from "../unixfs/node.ts";
import { settingsOf } from "./cid_settings.ts";
import { type FileEntry, Folder, isMissing, kindOf, missing } from "./folder.ts";
import type { GcGuard } from "./gc_guard.ts";
import { lookup, lookupFolder, withTrailingSlash } from "./lookup.ts";
import type { ChangeOptions, Namespace } from "./namespace.ts";
import { entryOf, isWithin, type NamespacePath, nameOf, parentOf } from "./path.ts";

const alreadyExists = () => failure("FILE_EXISTS");

/** Returns the CID at a path. Its block is stored, but not durable yet. */
export function cidAt(files: Namespace, path: NamespacePath, options: ReadOptions, guard?: GcGuard): Promise<CID> {
  return files.withTree(options, async (root) => (await linkTo(files, await lookup(root, path))).cid, guard);
}

/** Returns CID and size of an entry, for a link to it. */
async function linkTo(files: Namespace, entry: Folder | FileEntry) {
  if (entry instanceof Folder) return files.store(entry);
  const { node } = entry;
  return { cid: node.cid, size: cumulativeSize(node) };
}

/**
 * Like `linkTo`, for a link that becomes part of the tree: the blocks below it are stored. @throws
 * NodeError STORE_FULL
 */
async function storedLinkTo(files: Namespace, entry: Folder | FileEntry) {
  const link = await linkTo(files, entry);
  await files.write();
  return link;
}

/** Makes all changes up to now durable and returns the CID at the path. */
export async function flush(files: Namespace, path: NamespacePath, options: ReadOptions): Promise<CID> {
  return files.withGcGuard(options.signal, async (guard) => {
    const cid = await cidAt(files, path, options, guard);
    await files.commit({ whole: true });
    return cid;
  });
}

export interface MakeOptions extends ChangeOptions {
  /** Create missing parents, and accept an existing directory. */
  readonly parents: boolean;
  /** Settings of new directories; by default those of their parent. */
  readonly settings: CidSettings | undefined;
  /** With `parents`: change the settings of the last directory if it exists. */
  readonly changesExisting?: boolean | undefined;
}

export async function makeDirectory(files: Namespace, path: NamespacePath, options: MakeOptions): Promise<void> {
  if (path.segments.length > 0) {
    await files.change(options, (root) => make(files, root, path, options));
  } else if (!options.parents) {
    throw new NodeError("FILE_EXISTS", "cannot create directory '/': Already exists");
  }
}

/** Creates a directory, within a change. */
export async function make(
  files: Namespace,
  root: Folder,
  { segments }: NamespacePath,
  { parents, settings, changesExisting }: Pick<MakeOptions, "parents" | "settings" | "changesExisting">,
): Promise<void> {
  let folder = root;
  for (const [at, name] of segments.entries()) {
    const last = at === segments.length - 1;
    if ((await folder.find(name)) === undefined && (last || parents)) {
      const made = await files.newDirectories(segments.slice(at + 1), settings ?? folder.settings);
      return folder.add({ name, ...made });
    }
    const found = await folder.child(name);
    if (last && !(parents && found instanceof Folder)) throw alreadyExists();
    if (!(found instanceof Folder)) throw failure("PARENT_NOT_A_DIRECTORY", { path: segments.slice(0, at).join("/") });
    folder = found;
    if (last && settings !== undefined && changesExisting === true) folder.changeSettings(settings);
  }
}

/**
 * The source of a copy: a block, or the entry at an MFS path. `text` is the path in the form that
 * the caller gave.
 */
export interface CopySource {
  readonly text: string;
  /** Last component of the name; undefined for the root of MFS. */
  readonly name: string | undefined;
  readonly at: CID | NamespacePath;
}

export interface CopyOptions extends ChangeOptions {
  /** Replace an existing file. */
  readonly force?: boolean | undefined;
  /** Create missing parent directories. */
  readonly parents?: boolean | undefined;
  /** Settings of these directories; by default those of their parent. */
  readonly settings?: CidSettings | undefined;
}

/** Links a block into the tree in one step. Nothing is copied, and only the first block is read. */
export async function copy(
  files: Namespace,
  source: CopySource,
  dest: NamespacePath,
  options: CopyOptions,
): Promise<void> {
  const into = dest.trailingSlash || dest.segments.length === 0;
  const text = into ? `${withTrailingSlash(dest)}${source.name ?? ""}` : dest.text;
  const name = into ? source.name : dest.segments.at(-1);
  const from = `cp: cannot get node from path ${source.text}`;
  const to = `cp: cannot put node in path ${text}`;
  await files.change(options, async (root) => {
    const link = await prefixFailure(from, () => sourceLink(files, root, source.at));
    if (name === undefined)
      throw failure("FILES_PATH_INVALID", { reason: `${to}: cannot create file with empty name` });
    const above = into ? dest : parentOf(dest);
    // A block that cannot be an entry is rejected before anything is created for it.
    const check = async () => requireEntry(link.cid, await files.readLocal(link.cid), text);
    if (options.parents) {
      await check();
      await make(files, root, above, { parents: true, settings: options.settings });
    }
    const folder = await prefixFailure(to, () => lookupFolder(root, above));
    const isThere = (await prefixFailure(to, () => folder.find(name))) !== undefined;
    if (!isThere || options.force) await check();
    if (!isThere || !options.force) return prefixFailure(to, () => folder.add({ name, ...link }));
    if ((await prefixFailure(to, () => folder.child(name))) instanceof Folder) {
      throw failure("NOT_A_FILE", { reason: `cp: cannot unlink existing file: not a file: ${text}` });
    }
    return prefixFailure(to, () => folder.replace({ name, ...link }));
  });
}

/** @throws NodeError NOT_AN_ENTRY for a block that cannot be an entry of MFS */
function requireEntry(cid: CID, bytes: Uint8Array, path: string): void {
  try {
    kindOf(cid, bytes);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw failure("NOT_AN_ENTRY", { path, reason: error.message, codec: cid.code }, error);
  }
}

async function sourceLink(files: Namespace, root: Folder, at: CopySource["at"]) {
  if ("segments" in at) return storedLinkTo(files, await lookup(root, at));
  return { cid: at, size: await sizeOf(at, files.readLocal) };
}

async function sizeOf(cid: CID, read: ReadBlock): Promise<number> {
  const bytes = await read(cid);
  const node = unixfsNode(cid, bytes);
  return node === undefined ? bytes.length : cumulativeSize(node);
}

/** Adds a prefix to the texts of the node's failures. */
async function prefixFailure<T>(what: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw reworded(error, `${what}: ${error.message}`);
  }
}

/** Moves into an existing directory, or replaces an existing file. */
export async function move(
  files: Namespace,
  source: NamespacePath,
  dest: NamespacePath,
  options: ChangeOptions,
): Promise<void> {
  const own = source.segments.at(-1);
  if (own === undefined) throw missing();
  const into = dest.trailingSlash || dest.segments.length === 0;
  const requested = into ? entryOf(dest, own) : dest;
  await files.change(options, async (root) => {
    let target = requested;
    let folder = await lookupFolder(root, parentOf(target));
    const from = await lookupFolder(root, source.trailingSlash ? source : parentOf(source));
    if (source.trailingSlash) throw missing();
    const entry = await from.child(own);
    if (isWithin(target, source) && isWithin(source, target)) return;
    let there = await folder.findChild(nameOf(target));
    if (there instanceof Folder) {
      target = entryOf(target, own);
      folder = there;
      if (await folder.find(own)) throw duplicateEntry();
      there = undefined;
    }
    if (entry instanceof Folder && isWithin(target, source)) {
      throw failure("FILES_CHANGE_REFUSED", {
        reason: `cannot move ${source.text} to a subdirectory of itself, ${target.text}`,
      });
    }
    const link = await storedLinkTo(files, entry);
    if (there !== undefined) await folder.readyToRemove(nameOf(target));
    await from.readyToRemove(own);
    // All blocks were read by now, so nothing can fail from here on.
    if (there !== undefined) await folder.remove(nameOf(target));
    await folder.add({ name: nameOf(target), ...link });
    await from.remove(own);
  });
}

export interface RemoveOptions extends ChangeOptions {
  /** Remove directories with everything in them, too. */
  readonly recursive: boolean;
  /** Remove entries of any kind, and accept a missing entry. */
  readonly force: boolean;
}

export async function remove(files: Namespace, path: NamespacePath, options: RemoveOptions): Promise<void> {
  const { recursive, force } = options;
  if (path.segments.length === 0) throw failure("FILES_CHANGE_REFUSED", { reason: "cannot delete root" });
  const name = nameOf(path);
  await files.change(options, async (root) => {
    try {
      const folder = await parentLookup(root, path);
      if (!force && (await folder.child(name)) instanceof Folder && !recursive) {
        throw failure("NOT_RECURSIVE", { path: `/${path.segments.join("/")}` });
      }
      await folder.remove(name);
    } catch (error) {
      if (!(force && isMissing(error))) throw error;
    }
  });
}

async function parentLookup(root: Folder, path: NamespacePath): Promise<Folder> {
  try {
    const found = await lookup(root, parentOf(path));
    if (found instanceof Folder) return found;
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw reworded(error, `parent lookup: ${error.message}`);
  }
  throw new NodeError(
    "NOT_A_DIRECTORY",
    "parent lookup: expected *mfs.Directory, didn't get it. This is likely a race condition",
  );
}

/**
 * Changes the CID settings of a directory. They also apply to later entries. Without settings it
 * only flushes.
 */
export async function changeCid(
  files: Namespace,
  path: NamespacePath,
  settings: CidSettings | undefined,
  options: ChangeOptions,
): Promise<void> {
  if (settings === undefined) {
    if (options.flush) await flush(files, path, options);
    return;
  }
  await files.change(options, async (root) => {
    const found = await lookup(root, path);
    if (!(found instanceof Folder)) throw new NodeError("NOT_A_DIRECTORY", "can only update directories");
    found.changeSettings(settings);
  });
}

/**
 * Changes mode or time of a file, directory or symlink. A raw block is replaced by a node with its
 * bytes.
 */
export async function changeFacts(
  files: Namespace,
  path: NamespacePath,
  change: (facts: ModeAndTime) => ModeAndTime,
  options: ChangeOptions,
): Promise<void> {
  const release = await files.writers.acquire(path.segments.join("/"), options.signal);
  try {
    await files.change(options, async (root) => {
      const found = await lookup(root, path);
      if (found instanceof Folder) return found.changeFacts(change(found.facts));
      const folder = await lookupFolder(root, parentOf(path));
      const built = await withFacts(found.node, change, (block) => files.blocks.put([block]));
      return folder.replace({ name: nameOf(path), ...built });
    });
  } finally {
    release();
  }
}

/** Returns the same node with another mode or time. */
function withFacts(
  { cid, links, unixfs }: UnixfsNode,
  change: (facts: ModeAndTime) => ModeAndTime,
  sink: BlockSink,
): Promise<Built> {
  const data = encodeUnixfs({ ...unixfs, ...change(unixfs) });
  return buildNode({ data, links }, cid.code === raw ? defaultCid : settingsOf(cid), sink);
}
