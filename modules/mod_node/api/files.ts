/** MFS, the mutable file system: files and directories under one root. */
import type { CID } from "multiformats/cid";
import { namespaceForm } from "../content/adder/import_config.ts";
import { inSession } from "../content/dag/reader.ts";
import { cidSettings } from "../content/mfs/cid_settings.ts";
import { describe, type Kind, linkPages, type NamespaceEntry, pagesOfEntries, statOf } from "../content/mfs/list.ts";
import { localityOf } from "../content/mfs/locality.ts";
import {
  type CopySource,
  changeCid,
  changeFacts,
  cidAt,
  copy,
  flush,
  makeDirectory,
  move,
  remove,
} from "../content/mfs/operations.ts";
import { type NamespacePath, nameOf, namespacePath, uncheckedPath } from "../content/mfs/path.ts";
import { fileAt, writeFile } from "../content/mfs/write_file.ts";
import { readFile } from "../content/unixfs/read.ts";
import { unixNow } from "../content/unixfs/times.ts";
import type { Names } from "../formats/cid/codecs.ts";
import { parseChunker } from "../formats/unixfs/chunker/parse.ts";
import { withBits } from "../formats/unixfs/mode.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { oneByOne } from "../util/async/one_by_one.ts";
import { failure, NodeError, reworded } from "../util/errors.ts";
import { type ByteStream, LazyByteStream } from "./byte_stream.ts";
import {
  type ByteSource,
  type CallOptions,
  type IpfsPath,
  listOf,
  piecesOf,
  type ReadOptions,
  readOptions,
  type ShardingMode,
} from "./common.ts";
import { type ModeInput, modeOf, type ShownFacts, shownFacts, type TimeInput, timeOf } from "./mode_and_time.ts";

export interface FilesChangeOptions extends CallOptions {
  /** Make the change durable before the call resolves; true by default. */
  readonly flush?: boolean | undefined;
  /** When directories become sharded, and plain again; `by config` by default. */
  readonly sharding?: ShardingMode | undefined;
  /**
   * Refuse `cp`, `mv`, `write` and `mkdir` without `flush` after `Internal.MFSNoFlushLimit` of them
   * in a row, as Kubo 0.43 does. False by default: this node does not lose changes that it has
   * confirmed.
   */
  readonly limitsUnflushed?: boolean | undefined;
}

export interface FilesTouchOptions extends FilesChangeOptions {
  /** Time of the last modification; the current time by default. */
  readonly mtime?: TimeInput | undefined;
}

/**
 * The form of new CIDs. By default `Import.CidVersion` and `Import.HashFunction` determine it, and
 * version 0 applies if they are not set, whatever the parent directory uses. With
 * `importDefaults: false` the form of the parent directory applies.
 */
export interface FilesCidOptions extends FilesChangeOptions {
  readonly cidVersion?: number | undefined;
  /** Hash function by name; implies CIDs of version 1. */
  readonly hashAlg?: string | undefined;
  /** The table of names of hash functions; that of go-ipfs 0.9 by default. */
  readonly names?: Names;
  /** Use `Import.*` of the configuration for options that are not given; true by default. */
  readonly importDefaults?: boolean | undefined;
}

/**
 * Whether paths below `/ipns` are IPNS names, as in Kubo 0.43, or paths of the mutable namespace,
 * as in go-ipfs 0.9 (default).
 */
interface FilesNameOptions {
  readonly resolvesNames?: boolean | undefined;
}

/** The CID options apply to newly created parents. */
export interface FilesCpOptions extends FilesCidOptions, FilesNameOptions {
  /** Replace an existing file; a directory is never replaced. */
  readonly force?: boolean | undefined;
  /** Also create missing parents. */
  readonly parents?: boolean | undefined;
  /**
   * The value of `lowLevel.lock.voids` from before this program added the content. If the host has
   * lost its session of a shared store since then, another host may have collected the content as
   * garbage, and the call fails with SESSION_LOST.
   */
  readonly voids?: number | undefined;
}

export interface FilesMkdirOptions extends FilesCidOptions {
  /** Also create missing parents, and accept an existing directory. */
  readonly parents?: boolean | undefined;
}

export interface FilesRmOptions extends FilesChangeOptions {
  /** Remove directories with everything in them. */
  readonly recursive?: boolean | undefined;
  /** Remove whatever is at the path, and ignore what is missing. */
  readonly force?: boolean | undefined;
}

export interface FilesReadOptions extends CallOptions {
  /** Byte offset to start at. */
  readonly offset?: number | undefined;
  /** Maximum number of bytes to return. */
  readonly length?: number | undefined;
}

export interface FilesWriteOptions extends FilesCidOptions {
  /** Byte offset to start at; a gap before it is filled with zeros. */
  readonly offset?: number | undefined;
  /** Maximum number of bytes to write. */
  readonly length?: number | undefined;
  /** Create the file if it does not exist. */
  readonly create?: boolean | undefined;
  /** Also create missing parent directories. */
  readonly parents?: boolean | undefined;
  /** Truncate the file first. */
  readonly truncate?: boolean | undefined;
  /** Use raw blocks for new leaves; true by default in files with CIDs of version 1. */
  readonly rawLeaves?: boolean | undefined;
  /**
   * Store a file that has one raw leaf, and neither mode nor time, as that leaf, and preserve the
   * kind of leaves that are truncated or appended to, as Kubo 0.43 does. False by default.
   */
  readonly joinsLeaf?: boolean | undefined;
  /**
   * Maximum size in bytes of a block that the hash function `identity` puts into its CID; unlimited
   * by default.
   */
  readonly maxInline?: number | undefined;
  /** Maximum size in bytes of a chunk that `Import.UnixFSChunker` may produce; 1 MiB by default. */
  readonly maxChunk?: number | undefined;
}

export interface FilesLsOptions extends CallOptions {
  /**
   * Report type, size and CID of each entry; true by default. Without it only the blocks of the
   * directory itself are read.
   */
  readonly long?: boolean | undefined;
}

export interface FilesStatOptions extends CallOptions, FilesNameOptions {
  /** Report how much of it is stored on this machine. */
  readonly withLocal?: boolean | undefined;
  /** Describe symlinks as well, as files. */
  readonly symlinks?: boolean | undefined;
}

export interface FilesLsEntry {
  readonly name: string;
  /** The type; always `file` without `long`. */
  readonly type: Kind;
  /** Size of a file in bytes; 0 for a directory. */
  readonly size: number;
  /** Undefined without `long`. */
  readonly cid?: CID;
}

export interface FilesListing {
  /** Type of the node at the path. A file is listed as its own only entry. */
  readonly type: Kind;
  readonly entries: AsyncIterable<FilesLsEntry>;
  /**
   * The same entries in pages, which cost less if there are many. Callers read either `pages` or
   * `entries`.
   */
  readonly pages: AsyncIterable<readonly FilesLsEntry[]>;
  /**
   * Listings with the same name have the same entries, whatever changed in between. Absent for a
   * file, and if the block store cannot tell whether blocks were removed.
   */
  readonly name?: string;
}

export interface FilesStatResult extends ShownFacts {
  readonly cid: CID;
  /** Size of a file in bytes; 0 for a directory. */
  readonly size: number;
  /** Total bytes of the block and everything below it. */
  readonly cumulativeSize: number;
  /** Number of links in the block. */
  readonly blocks: number;
  readonly type: Kind;
  readonly isSymlink?: boolean;
  /** Whether `withLocal` was given. */
  readonly withLocality: boolean;
  /** Whether all of it is stored on this machine. */
  readonly local?: boolean;
  /** Bytes stored on this machine, if there are any; a block that occurs twice counts twice. */
  readonly sizeLocal?: number;
}

export interface FilesApi {
  /**
   * Sets the permissions of a file, directory or symlink; 0 removes them. As in Kubo, further bits
   * are read as Go's file modes define them, so the Unix ones (`1777`) have no effect.
   *
   * @throws NodeError for text that is not octal
   */
  chmod(path: string, mode: ModeInput, options?: FilesChangeOptions): Promise<void>;
  /** Sets the modification time of a file, directory or symlink. */
  touch(path: string, options?: FilesTouchOptions): Promise<void>;
  /**
   * Changes the CID version or hash function of a directory, also for entries that are created in
   * it later.
   */
  chcid(path: string, options?: FilesCidOptions): Promise<void>;
  /**
   * Copies files or directories, given by MFS path or `/ipfs` path; only links are copied. Each
   * copy is atomic.
   */
  cp(from: IpfsPath | readonly IpfsPath[], to: string, options?: FilesCpOptions): Promise<void>;
  /** Makes all changes so far durable; resolves to the CID of the path (default `/`). */
  flush(path?: string, options?: CallOptions): Promise<CID>;
  /** Lists a directory in its order, or a file as its only entry. */
  ls(path: IpfsPath, options?: FilesLsOptions): AsyncIterable<FilesLsEntry>;
  /** Like `ls`, but rejects before the first entry is read, and reports what is listed. */
  listing(path: IpfsPath, options?: FilesLsOptions): Promise<FilesListing>;
  mkdir(path: string, options?: FilesMkdirOptions): Promise<void>;
  /** Moves files or directories into an existing directory, or replaces an existing file. */
  mv(from: string | readonly string[], to: string, options?: FilesChangeOptions): Promise<void>;
  read(path: IpfsPath, options?: FilesReadOptions): ByteStream;
  rm(path: string | readonly string[], options?: FilesRmOptions): Promise<void>;
  /** Describes what is at an MFS path or an `/ipfs` path. */
  stat(path: IpfsPath, options?: FilesStatOptions): Promise<FilesStatResult>;
  /**
   * Writes into a file. The file changes only after all content has arrived; a failure leaves it
   * unchanged. A function is called for the content after the file has been found.
   */
  write(path: string, content: ByteSource | (() => Promise<ByteSource>), options?: FilesWriteOptions): Promise<void>;
}

/** Default of `Internal.MFSNoFlushLimit`. */
const MAX_UNFLUSHED = 256;

/** MFS paths are used as they are; all other content is named by its CID below `/ipfs`. */
const pathOf = (path: IpfsPath): NamespacePath => namespacePath(typeof path === "string" ? path : `/ipfs/${path}`);

/** Returns the CID form that the options ask for. */
const settingsOf = ({ cidVersion: version, hashAlg: hash, names }: FilesCidOptions) =>
  cidSettings({ version, hash, names });

/**
 * Returns the form of new CIDs: from the options or the configuration, never from the parent
 * directory. Without `importDefaults`, the form of the parent directory applies and an existing
 * directory can get another form, as in go-ipfs 0.9.
 */
function cidFormOf(options: FilesCidOptions, { repo }: LowLevelNode) {
  const settings = settingsOf(options);
  if (options.importDefaults === false) return { settings, changesExisting: true };
  const { cidVersion: version, hash } = namespaceForm(repo.config);
  return { settings: settings ?? cidSettings({ version, hash, names: options.names }) };
}

/** Whether a path names content; such paths take precedence over MFS paths. */
const isContent = ({ text }: NamespacePath, { resolvesNames }: FilesNameOptions): boolean =>
  text.startsWith("/ipfs/") || (resolvesNames === true && text.startsWith("/ipns/"));

async function contentAt(node: LowLevelNode, text: string, how: ReadOptions): Promise<CID> {
  const { cid, remainder } = await node.resolve(text, how);
  if (remainder.length > 0) throw failure("LINK_NOT_FOUND", { reason: "no such link found" });
  return cid;
}

async function sourceOf(
  node: LowLevelNode,
  found: NamespacePath,
  how: ReadOptions & FilesNameOptions,
): Promise<CopySource> {
  const text = `/${found.segments.join("/")}`;
  const name = nameOf(found) as string | undefined;
  if (!isContent(found, how)) return { text, name, at: found };
  try {
    const at = await contentAt(node, text, how);
    await node.reader(how)(at);
    return { text, name, at };
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw reworded(error, `cp: cannot get node from path ${text}: ${error.message}`);
  }
}

const named = ({ name }: { readonly name: string }): FilesLsEntry => ({ name, type: "file", size: 0 });
const shown = ({ name, kind, size, cid }: NamespaceEntry): FilesLsEntry => ({ name, type: kind, size, cid });

async function* shownAll<T>(
  pages: AsyncIterable<readonly T[]>,
  show: (entry: T) => FilesLsEntry,
): AsyncGenerator<readonly FilesLsEntry[]> {
  for await (const page of pages) yield page.map(show);
}

async function* alone(entry: FilesLsEntry): AsyncGenerator<readonly FilesLsEntry[]> {
  yield [entry];
}

async function list(node: LowLevelNode, path: IpfsPath, { long, ...options }: FilesLsOptions): Promise<FilesListing> {
  const how = readOptions(options);
  const found = pathOf(path);
  const read = node.reader({ ...how, buffers: node.blocks.buffers });
  const cid = await cidAt(node.files, found, how);
  const block = await read(cid);
  // The entry's name is the part of the path after the last slash.
  const entry = describe(found.trailingSlash ? "" : nameOf(found), cid, block);
  const { kind: type } = entry;
  if (type === "file") {
    const pages = alone(long === false ? named(entry) : shown(entry));
    return { type, pages, entries: oneByOne(pages) };
  }
  const pages =
    long === false ? shownAll(linkPages(cid, block, read), named) : shownAll(pagesOfEntries(cid, block, read), shown);
  const { standing } = node.blocks;
  const name = standing === undefined ? undefined : `${cid} ${long === false ? "names" : "entries"} ${standing}`;
  return { type, pages, entries: oneByOne(pages), ...(name && { name }) };
}

async function open(
  node: LowLevelNode,
  path: IpfsPath,
  { offset = 0, length, ...options }: FilesReadOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const how = readOptions(options);
  const { node: file, size } = await fileAt(node.files, pathOf(path), how);
  if (offset < 0) throw failure("OPTION_INVALID", { reason: "cannot specify negative offset" });
  if (offset > size) throw failure("OPTION_INVALID", { reason: `offset was past end of file (${offset} > ${size})` });
  if (length !== undefined && length < 0)
    throw failure("OPTION_INVALID", { reason: "cannot specify negative 'count'" });
  return readFile(file, node.reader(inSession(how)), { offset, length });
}

async function stat(node: LowLevelNode, path: IpfsPath, options: FilesStatOptions): Promise<FilesStatResult> {
  const how = readOptions(options);
  const found = pathOf(path);
  const cid = isContent(found, options) ? await contentAt(node, found.text, how) : await cidAt(node.files, found, how);
  const stat = statOf(cid, await node.reader(how)(cid), options.symlinks);
  const { kind: type, size, cumulativeSize, children: blocks, isSymlink = false } = stat;
  const result = { cid, size, cumulativeSize, blocks, type, ...shownFacts(stat), ...(isSymlink && { isSymlink }) };
  if (options.withLocal !== true) return { ...result, withLocality: false };
  const local = await localityOf(node.blocks, cid, how.signal);
  return {
    ...result,
    withLocality: true,
    ...(local.whole && { local: true }),
    ...(local.size > 0 && { sizeLocal: local.size }),
  };
}

/** Settings of a write: from its options, or else from the configuration. */
function writeSettings(node: LowLevelNode, options: FilesWriteOptions) {
  const raw = node.repo.config.value("Import.UnixFSRawLeaves") ?? undefined;
  return {
    offset: options.offset ?? 0,
    count: options.length,
    create: options.create === true,
    parents: options.parents === true,
    truncate: options.truncate === true,
    rawLeaves: options.rawLeaves ?? (options.importDefaults === false ? undefined : raw),
    joinsLeaf: options.joinsLeaf === true && raw !== false,
    keepsLeaves: options.joinsLeaf,
    maxInline: options.maxInline,
    chunker: options.importDefaults === false ? undefined : parseChunker(node.filesChunker, options.maxChunk),
    ...cidFormOf(options, node),
  };
}

export function filesApi(node: LowLevelNode): FilesApi {
  const { files } = node;
  const limit = node.repo.config.value("Internal.MFSNoFlushLimit") ?? MAX_UNFLUSHED;
  const count = ({ limitsUnflushed = false, flush = true }: FilesChangeOptions) => {
    if (limitsUnflushed) files.unflushed.add(flush, limit);
  };
  const changing = (options: FilesChangeOptions) => ({
    ...readOptions(options),
    flush: options.flush !== false,
    sharding: options.sharding === "by size" ? node.sizeSharding : undefined,
  });
  return {
    async chmod(path, given, options = {}) {
      const mode = modeOf(given);
      await changeFacts(
        files,
        namespacePath(path),
        (facts) => ({ ...facts, mode: withBits(facts.mode, mode) }),
        changing(options),
      );
    },
    async touch(path, { mtime: given, ...options } = {}) {
      const mtime = timeOf(given) ?? unixNow();
      await changeFacts(files, namespacePath(path), ({ mode }) => ({ mode, mtime }), changing(options));
    },
    async chcid(path, options = {}) {
      await changeCid(files, uncheckedPath(path), settingsOf(options), changing(options));
    },
    async cp(from, to, options = {}) {
      const { force, parents, voids, resolvesNames } = options;
      const { settings } = cidFormOf(options, node);
      const how = { ...changing(options), force, parents, voids, settings, resolvesNames };
      const dest = namespacePath(to);
      for (const each of listOf(from)) {
        const source = await sourceOf(node, pathOf(each), how);
        count(options);
        await copy(files, source, dest, how);
      }
    },
    async flush(path = "/", options = {}) {
      const cid = await flush(files, uncheckedPath(path), readOptions(options));
      files.unflushed.reset();
      return cid;
    },
    async *ls(path, options = {}) {
      yield* (await list(node, path, options)).entries;
    },
    listing: (path, options = {}) => list(node, path, options),
    async mkdir(path, options = {}) {
      const made = namespacePath(path);
      count(options);
      const how = { ...changing(options), parents: options.parents === true, ...cidFormOf(options, node) };
      await makeDirectory(files, made, how);
    },
    async mv(from, to, options = {}) {
      count(options);
      const how = changing(options);
      for (const each of listOf(from)) await move(files, namespacePath(each), namespacePath(to), how);
    },
    read: (path, options = {}) => new LazyByteStream({ open: () => open(node, path, options) }),
    async rm(path, options = {}) {
      const how = { ...changing(options), recursive: options.recursive === true, force: options.force === true };
      for (const each of listOf(path)) await remove(files, namespacePath(each), how);
    },
    stat: (path, options = {}) => stat(node, path, options),
    async write(path, content, options = {}) {
      count(options);
      const to = namespacePath(path);
      const given = async () => piecesOf(typeof content === "function" ? await content() : content);
      await writeFile(files, to, given, { ...changing(options), ...writeSettings(node, options) });
    },
  };
}
