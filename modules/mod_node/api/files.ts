/** The mutable namespace (MFS): files and directories that change, under one root. */
import type { CID } from "multiformats/cid";
import { inSession } from "../content/dag/reader.ts";
import { cidSettings } from "../content/mfs/cid_settings.ts";
import { describe, type Entry, entriesIn, type Kind, linksIn, localityOf, statOf } from "../content/mfs/list.ts";
import { changeCid, cidAt, copy, flush, makeDirectory, move, remove, type Source } from "../content/mfs/operations.ts";
import { type NamespacePath, nameOf, namespacePath, uncheckedPath } from "../content/mfs/path.ts";
import { fileAt, writeFile } from "../content/mfs/write_file.ts";
import { readFile } from "../content/unixfs/read.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { NodeError } from "../util/errors.ts";
import { type ByteStream, LazyByteStream } from "./byte_stream.ts";
import { type ByteSource, type CallOptions, type IpfsPath, listOf, piecesOf, type Reading, reading } from "./common.ts";

export interface FilesChangeOptions extends CallOptions {
  /** The change is on the disk when the call resolves; true by default. */
  readonly flush?: boolean | undefined;
}

/** Of which form new CIDs are; by default as those of the directory. */
export interface FilesCidOptions extends FilesChangeOptions {
  readonly cidVersion?: number | undefined;
  /** Hash function by name; CIDs become version 1 with it. */
  readonly hashAlg?: string | undefined;
}

export interface FilesMkdirOptions extends FilesCidOptions {
  /** Make those above it, too; one that is there is no failure. */
  readonly parents?: boolean | undefined;
}

export interface FilesRmOptions extends FilesChangeOptions {
  /** Directories, too, with all that is in them. */
  readonly recursive?: boolean | undefined;
  /** Whatever is there; what is missing is no failure. */
  readonly force?: boolean | undefined;
}

export interface FilesReadOptions extends CallOptions {
  /** Byte to begin with. */
  readonly offset?: number | undefined;
  /** Most bytes to give. */
  readonly length?: number | undefined;
}

export interface FilesWriteOptions extends FilesCidOptions {
  /** Byte at which to begin; a gap before it becomes zeros. */
  readonly offset?: number | undefined;
  /** Most bytes to take. */
  readonly length?: number | undefined;
  /** Make the file when it is not there. */
  readonly create?: boolean | undefined;
  /** Make the directories above it, too. */
  readonly parents?: boolean | undefined;
  /** Empty the file first. */
  readonly truncate?: boolean | undefined;
  /** Raw blocks for new leaves; by default in files of CID version 1. */
  readonly rawLeaves?: boolean | undefined;
}

export interface FilesLsOptions extends CallOptions {
  /** Tell type, size and CID of each entry; true by default. Names alone are read from the directory's own blocks. */
  readonly long?: boolean | undefined;
}

export interface FilesStatOptions extends CallOptions {
  /** Tell how much of it is stored here. */
  readonly withLocal?: boolean | undefined;
}

export interface FilesLsEntry {
  readonly name: string;
  /** `file` where only names were asked for. */
  readonly type: Kind;
  /** Bytes of a file; 0 for a directory. */
  readonly size: number;
  /** Missing where only names were asked for. */
  readonly cid?: CID;
}

export interface FilesListing {
  /** What is at the path: a file is listed as its one entry. */
  readonly type: Kind;
  readonly entries: AsyncIterable<FilesLsEntry>;
}

export interface FilesStatResult {
  readonly cid: CID;
  /** Bytes of a file; 0 for a directory. */
  readonly size: number;
  /** The block and all below it, in bytes. */
  readonly cumulativeSize: number;
  /** Links of the block. */
  readonly blocks: number;
  readonly type: Kind;
  /** Whether it was asked how much is stored here. */
  readonly withLocality: boolean;
  /** True where all of it is. */
  readonly local?: boolean;
  /** Bytes of it that are, where there are any; a block that stands in two places counts twice. */
  readonly sizeLocal?: number;
}

export interface FilesApi {
  /** Changes the version or hash function of a directory's CID, and of what is made in it later. */
  chcid(path: string, options?: FilesCidOptions): Promise<void>;
  /** Puts files or trees into the namespace, each by its path there or below `/ipfs`; no bytes are copied. */
  cp(from: IpfsPath | readonly IpfsPath[], to: string, options?: FilesChangeOptions): Promise<void>;
  /** Puts all changes up to now on the disk; gives what is at the path, `/` by default. */
  flush(path?: string, options?: CallOptions): Promise<CID>;
  /** The entries of a directory in its order, or a file as its one entry. */
  ls(path: IpfsPath, options?: FilesLsOptions): AsyncIterable<FilesLsEntry>;
  /** As `ls`; it fails before the first entry is asked for, and tells what is listed. */
  listing(path: IpfsPath, options?: FilesLsOptions): Promise<FilesListing>;
  mkdir(path: string, options?: FilesMkdirOptions): Promise<void>;
  /** Moves files or directories: an existing directory takes them in, an existing file is replaced. */
  mv(from: string | readonly string[], to: string, options?: FilesChangeOptions): Promise<void>;
  read(path: IpfsPath, options?: FilesReadOptions): ByteStream;
  rm(path: string | readonly string[], options?: FilesRmOptions): Promise<void>;
  /** What a path of the namespace is, or one below `/ipfs`. */
  stat(path: IpfsPath, options?: FilesStatOptions): Promise<FilesStatResult>;
  /**
   * Writes into a file, which changes when all content is there, and not at all when that fails. A function is asked for the
   * content when the file has been found.
   */
  write(path: string, content: ByteSource | (() => Promise<ByteSource>), options?: FilesWriteOptions): Promise<void>;
}

/** What is in the namespace is named by its path, all else by its CID below `/ipfs`. */
const pathOf = (path: IpfsPath): NamespacePath => namespacePath(typeof path === "string" ? path : `/ipfs/${path}`);

const changing = (options: FilesChangeOptions) => ({ ...reading(options), flush: options.flush !== false });

const settingsOf = ({ cidVersion: version, hashAlg: hash }: FilesCidOptions) => cidSettings({ version, hash });

/** A path below /ipfs counts before one of the namespace. */
const isContent = ({ text }: NamespacePath): boolean => text.startsWith("/ipfs/");

async function contentAt(node: LowLevelNode, text: string, how: Reading): Promise<CID> {
  const { cid, remainder } = await node.resolve(text, how);
  if (remainder.length > 0) throw new NodeError("no such link found");
  return cid;
}

async function sourceOf(node: LowLevelNode, found: NamespacePath, how: Reading): Promise<Source> {
  const text = `/${found.segments.join("/")}`;
  const name = nameOf(found) as string | undefined;
  if (!isContent(found)) return { text, name, at: found };
  try {
    const at = await contentAt(node, text, how);
    await node.reader(how)(at);
    return { text, name, at };
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw new NodeError(`cp: cannot get node from path ${text}: ${error.message}`, { cause: error });
  }
}

async function* namesIn(links: ReturnType<typeof linksIn>): AsyncGenerator<FilesLsEntry> {
  for await (const { name } of links) yield { name, type: "file", size: 0 };
}

const shown = ({ name, kind, size, cid }: Entry): FilesLsEntry => ({ name, type: kind, size, cid });

async function* shownAll(entries: AsyncIterable<Entry>): AsyncGenerator<FilesLsEntry> {
  for await (const entry of entries) yield shown(entry);
}

async function* alone(entry: FilesLsEntry): AsyncGenerator<FilesLsEntry> {
  yield entry;
}

async function list(node: LowLevelNode, path: IpfsPath, { long, ...options }: FilesLsOptions): Promise<FilesListing> {
  const how = reading(options);
  const found = pathOf(path);
  const read = node.reader(how);
  const cid = await cidAt(node.files, found, how);
  const block = await read(cid);
  // The name is what stands behind the last slash.
  const entry = describe(found.trailingSlash ? "" : nameOf(found), cid, block);
  const { kind: type, name } = entry;
  if (type === "file") {
    return { type, entries: alone(long === false ? { name, type, size: 0 } : shown(entry)) };
  }
  const entries = long === false ? namesIn(linksIn(cid, block, read)) : shownAll(entriesIn(cid, block, read));
  return { type, entries };
}

async function open(
  node: LowLevelNode,
  path: IpfsPath,
  { offset = 0, length, ...options }: FilesReadOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const how = reading(options);
  const { node: file, size } = await fileAt(node.files, pathOf(path), how);
  if (offset < 0) throw new NodeError("cannot specify negative offset");
  if (offset > size) throw new NodeError(`offset was past end of file (${offset} > ${size})`);
  if (length !== undefined && length < 0) throw new NodeError("cannot specify negative 'count'");
  return readFile(file, node.reader(inSession(how)), { offset, length });
}

async function stat(node: LowLevelNode, path: IpfsPath, options: FilesStatOptions): Promise<FilesStatResult> {
  const how = reading(options);
  const found = pathOf(path);
  const cid = isContent(found) ? await contentAt(node, found.text, how) : await cidAt(node.files, found, how);
  const { kind: type, size, cumulativeSize, children: blocks } = statOf(cid, await node.reader(how)(cid));
  const result = { cid, size, cumulativeSize, blocks, type };
  if (options.withLocal !== true) return { ...result, withLocality: false };
  const local = await localityOf(node.blocks, cid, how.signal);
  return {
    ...result,
    withLocality: true,
    ...(local.whole && { local: true }),
    ...(local.size > 0 && { sizeLocal: local.size }),
  };
}

export function filesApi(node: LowLevelNode): FilesApi {
  const { files } = node;
  return {
    async chcid(path, options = {}) {
      await changeCid(files, uncheckedPath(path), settingsOf(options), changing(options));
    },
    async cp(from, to, options = {}) {
      const how = changing(options);
      const dest = namespacePath(to);
      for (const each of listOf(from)) await copy(files, await sourceOf(node, pathOf(each), how), dest, how);
    },
    async flush(path = "/", options = {}) {
      return flush(files, uncheckedPath(path), reading(options));
    },
    async *ls(path, options = {}) {
      yield* (await list(node, path, options)).entries;
    },
    listing: (path, options = {}) => list(node, path, options),
    async mkdir(path, options = {}) {
      const made = namespacePath(path);
      const settings = settingsOf(options);
      await makeDirectory(files, made, { ...changing(options), parents: options.parents === true, settings });
    },
    async mv(from, to, options = {}) {
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
      const to = namespacePath(path);
      const settings = settingsOf(options);
      const given = async () => piecesOf(typeof content === "function" ? await content() : content);
      await writeFile(files, to, given, {
        ...changing(options),
        offset: options.offset ?? 0,
        count: options.length,
        create: options.create === true,
        parents: options.parents === true,
        truncate: options.truncate === true,
        rawLeaves: options.rawLeaves,
        settings,
      });
    },
  };
}
