/** Writes UnixFS DAGs as tar archives, with the layout of the reference's `get`. */
import { posix } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { blockSize, isAscii } from "../../formats/tar/header.ts";
import { type PlainEntry, padding, writeEntry } from "../../formats/tar/write.ts";
import type { UnixTime } from "../../formats/unixfs/format.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { byteText, textBytes } from "../../util/byte_text.ts";
import { failure } from "../../util/errors.ts";
import { Readahead } from "../dag/readahead.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { JoinedPieces, MAX_JOINED_BYTES } from "./joined_pieces.ts";
import { entries } from "./list.ts";
import { fileSize, isDirectory, type UnixfsNode, unixfsNode } from "./node.ts";
import { openFile } from "./open.ts";
import { readFile } from "./read.ts";
import { unixNow } from "./times.ts";

/** Number of entries after which other work of the process gets its turn. */
const TURN_ENTRIES = 256;
const none = new Uint8Array();
const trailer = new Uint8Array(2 * blockSize);

/**
 * The error for names that lead out of the folder, in the words of later versions of the reference:
 * unpacking such an archive could overwrite other files.
 */
const outside = "relative UnixFS paths outside the root are not allowed, use CAR instead";

/** An entry with its names as text instead of bytes. */
interface TextEntry extends Omit<PlainEntry, "linkname"> {
  readonly target?: string;
}

export interface TarOptions {
  /**
   * The pool that `read` takes its buffers from. The consumer of the pieces releases each of them
   * to the pool.
   */
  readonly buffers?: BufferPool | undefined;
  /**
   * Entries without a time get the current time with its fraction of a second. That needs one more
   * block per entry.
   */
  readonly exactNow?: boolean | undefined;
  /** Whether times are written without their fraction of a second. */
  readonly wholeSeconds?: boolean | undefined;
}

/**
 * Writes an archive; `name` is the name of the root. Only a few blocks of a file, the first blocks
 * of some following entries, and one node of each level above stay in memory.
 *
 * @throws NodeError at an entry that would be unpacked outside of the root. The bytes that were
 * yielded before are correct
 */
export async function* exportTar(
  root: UnixfsNode,
  name: string,
  read: ReadBlock,
  { buffers, exactNow = false, wholeSeconds = false }: TarOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const out = new JoinedPieces(buffers);
  const opened = new Readahead<ComingEntry, UnixfsNode>(({ length }) => length);
  const ahead: Ahead = { read, readShard: keeping(read, buffers), buffers, opened, exactNow, wholeSeconds };
  try {
    yield* writeTar(root, name, ahead, out);
  } catch (error) {
    yield* out.take();
    throw error;
  } finally {
    ahead.opened.end();
  }
  out.add(trailer);
  yield* out.take();
}

async function* writeTar(
  root: UnixfsNode,
  name: string,
  ahead: Ahead,
  out: JoinedPieces,
): AsyncGenerator<Uint8Array, void, undefined> {
  const levels: TarLevel[] = [];
  const inside = `${name}/`;
  // Only for the current level: the full names of all levels of a deep tree could exceed the
  // memory.
  let folder = folderOf(levels);
  let at: NamedNode | undefined = { name, node: root };
  for (let steps = 1; at !== undefined; at = entryHere(levels, ahead) ?? (await nextEntry(levels, ahead)), steps += 1) {
    // Lets the event loop run, so that a disconnection of the client is noticed.
    if (steps % TURN_ENTRIES === 0) await nextTurn();
    if (levels.at(-1) !== folder.level) folder = folderOf(levels);
    const path = isPlain(at.name) && folder.isPlain ? `${folder.path}/${at.name}` : pathOf(levels, at.name);
    if (levels.length > 0 && !path.startsWith(inside)) throw failure("TAR_NOT_WRITTEN", { reason: outside });
    const { node } = at;
    if (isDirectory(node)) {
      out.add(header({ name: path, type: "5", size: 0, ...stated(node, DIRECTORY_MODE, ahead) }));
      levels.push({ name: at.name, links: linksOf(node, ahead.readShard), next: [], over: false, areAtHand: false });
    } else if (node.unixfs.type === "Symlink") {
      const target = byteText(node.unixfs.data ?? new Uint8Array());
      const { mtime = EPOCH } = node.unixfs;
      out.add(header({ name: path, type: "2", size: 0, target, mode: 0o777, mtime }));
    } else if (isSingle(node)) {
      const size = fileSize(node);
      const data = dataOf(node, size);
      out.add(header({ name: path, type: "0", size, ...stated(node, FILE_MODE, ahead) }));
      out.add(data);
      ahead.buffers?.release(data);
      endFile(out, size, data.length);
    } else {
      yield* writeFile(node, path, ahead, out);
    }
    if (out.isDue) yield* out.take();
  }
}

const pathOf = (levels: readonly TarLevel[], name: string): string =>
  posix.normalize([...levels.map((level) => level.name), name].join("/"));

/** Returns the full name of the deepest directory. */
function folderOf(levels: readonly TarLevel[]) {
  const level = levels.at(-1);
  const path = level === undefined ? "" : pathOf(levels.slice(0, -1), level.name);
  return { level, path, isPlain: level !== undefined && path !== "." && !path.endsWith("/") };
}

/** Whether a name always leads one level down, whatever it is joined to. */
const isPlain = (name: string): boolean => name !== "" && name !== "." && name !== ".." && !name.includes("/");

/** Whether the whole file is in one block. There may be very many such files. */
const isSingle = ({ links, unixfs, length }: UnixfsNode): boolean =>
  links.length === 0 && length < MAX_JOINED_BYTES && (unixfs.blocksizes?.length ?? 0) === 0;

function dataOf({ unixfs: { data = none } }: UnixfsNode, size: number): Uint8Array {
  return data.length > size ? data.subarray(0, size) : data;
}

function endFile(out: JoinedPieces, size: number, written: number): void {
  if (written < size)
    throw failure("TAR_NOT_WRITTEN", { reason: `archive/tar: missed writing ${size - written} bytes` });
  const rest = padding(size);
  if (rest > 0) out.add(trailer.subarray(0, rest));
}

/** Writes a file. Large pieces are yielded without a copy. */
async function* writeFile(
  node: UnixfsNode,
  name: string,
  ahead: Ahead,
  out: JoinedPieces,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { read, buffers } = ahead;
  const size = fileSize(node);
  out.add(header({ name, type: "0", size, ...stated(node, FILE_MODE, ahead) }));
  let written = 0;
  for await (const piece of readFile(node, read, { buffers })) {
    written += piece.length;
    if (written > size) throw failure("TAR_NOT_WRITTEN", { reason: "archive/tar: write too long" });
    if (piece.length >= MAX_JOINED_BYTES) {
      yield* out.take();
      yield piece;
      continue;
    }
    out.add(piece);
    buffers?.release(piece);
    if (out.isDue) yield* out.take();
  }
  endFile(out, size, written);
}

interface NamedNode {
  readonly name: string;
  readonly node: UnixfsNode;
}

interface ComingEntry {
  readonly name: string;
  /** Undefined for a `fault`: the listing has failed, which is reported when its turn comes. */
  readonly cid: PbLink["cid"] | undefined;
  readonly fault?: unknown;
}

/** A directory that is being listed. */
interface TarLevel {
  readonly name: string;
  readonly links: Iterator<PbLink, undefined> | AsyncIterator<PbLink, void>;
  /** The next entries, which are opened ahead as far as there is room. */
  readonly next: ComingEntry[];
  /** Whether there are no more links. */
  over: boolean;
  /** Whether all of the next entries were available without a request. */
  areAtHand: boolean;
}

/**
 * Maximum number of entries that are opened ahead: `entries` of one directory, `all` of all levels,
 * with at most `bytes` bytes. One read fetches neighbours in the store.
 */
const AHEAD = { entries: 64, all: 64, bytes: 256 * 1024 };

interface Ahead {
  readonly read: ReadBlock;
  /**
   * Reads nodes of directories, whose links are used for long. Content that is inlined in a CID is
   * a view of these blocks, too.
   */
  readonly readShard: ReadBlock;
  readonly buffers: BufferPool | undefined;
  /** Entries on all levels that were opened ahead. */
  readonly opened: Readahead<ComingEntry, UnixfsNode>;
  readonly exactNow: boolean;
  readonly wholeSeconds: boolean;
}

/** Returns the next entry if it is available. Most of many entries are, and each promise costs. */
function entryHere(levels: readonly TarLevel[], ahead: Ahead): NamedNode | undefined {
  const level = levels.at(-1);
  const next = level?.next[0];
  if (level === undefined || next === undefined || isShort(level)) return undefined;
  const node = ahead.opened.atHand(next);
  if (node === undefined) return undefined;
  ahead.opened.take(level.next.shift() as ComingEntry);
  return named(next.name, node, ahead);
}

function named(name: string, node: UnixfsNode, { buffers }: Ahead): NamedNode {
  // The CIDs of links are views of the block, and are used later.
  if (node.links[0] !== undefined) buffers?.retain(node.links[0].cid.multihash.bytes);
  return { name, node };
}

/**
 * Returns the next entry, in the deepest directory that has one. Iterative, because trees may be
 * arbitrarily deep.
 */
async function nextEntry(levels: TarLevel[], ahead: Ahead): Promise<NamedNode | undefined> {
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    if (isShort(level)) await openAhead(level, ahead);
    const next = level.next.shift();
    if (next !== undefined) {
      const { name, cid, fault } = next;
      if (cid === undefined) throw fault;
      return named(name, await (ahead.opened.take(next) ?? openFile(cid, ahead.read)), ahead);
    }
    levels.pop();
  }
  return undefined;
}

/**
 * The links of a plain directory are available without promises, whose cost adds up for many
 * entries.
 */
const linksOf = (node: UnixfsNode, read: ReadBlock): TarLevel["links"] =>
  node.unixfs.type === "HAMTShard" ? entries(node, read) : node.links.values();

/**
 * Whether more entries should be opened: half of the previous ones were used, or all of them if
 * none needed a wait.
 */
const isShort = ({ over, next, areAtHand }: TarLevel): boolean =>
  !over && next.length <= (areAtHand ? 0 : AHEAD.entries / 2);

/**
 * Opens the next entries, at least one. They are requested together, because blocks that are
 * requested together are read together. After a large entry no others are opened.
 */
async function openAhead(level: TarLevel, ahead: Ahead): Promise<void> {
  const room = Math.min(AHEAD.entries - level.next.length, AHEAD.all - ahead.opened.size);
  if (room <= 0 && level.next.length > 0) return;
  const links: PbLink[] = [];
  let bytes = 0;
  let fault: ComingEntry | undefined;
  do {
    const listing = listed(level.links);
    const { value, failed } = listing instanceof Promise ? await listing : listing;
    level.over = value === undefined;
    if (value !== undefined) links.push(value);
    else if (failed !== undefined) fault = { name: "", cid: undefined, fault: failed };
    bytes += value?.size ?? 0;
  } while (!level.over && links.length < room && bytes <= AHEAD.bytes);
  const here = bytes <= AHEAD.bytes ? ahead.read.peek?.(links.map(({ cid }) => cid)) : undefined;
  level.areAtHand = true;
  for (const [at, { name, cid, size }] of links.entries()) {
    const coming = { name, cid };
    const node = openHere(cid, here?.[at]);
    if (node === undefined || !ahead.opened.add(coming, node)) {
      level.areAtHand = false;
      ahead.opened.request(coming, size, () => openFile(cid, ahead.read));
    }
    level.next.push(coming);
  }
  if (fault !== undefined) level.next.push(fault);
}

/** Returns undefined for blocks that `openFile` must read or reject. */
function openHere(cid: PbLink["cid"], bytes: Uint8Array | undefined): UnixfsNode | undefined {
  const node = bytes && unixfsNode(cid, bytes);
  return node?.unixfs.type === "Metadata" ? undefined : node;
}

/** Returns a reader whose blocks are not returned to the pool. */
const keeping = (read: ReadBlock, buffers: BufferPool | undefined): ReadBlock =>
  buffers === undefined
    ? read
    : async (cid) => {
        const bytes = await read(cid);
        buffers.retain(bytes);
        return bytes;
      };

interface ListedLink {
  /** Undefined at the end. */
  readonly value?: PbLink | undefined;
  readonly failed?: unknown;
}

const listed = (links: TarLevel["links"]): ListedLink | Promise<ListedLink> => {
  const next = links.next();
  if (!(next instanceof Promise)) return next as ListedLink;
  return next.then(
    ({ value }) => ({ value: value ?? undefined }),
    (failed: unknown) => ({ failed }),
  );
};

const PERMISSIONS = 0o777;
const DIRECTORY_MODE = 0o777;
const FILE_MODE = 0o644;
const EPOCH: UnixTime = { seconds: 0, nanoseconds: 0 };

const wholeNow = (): UnixTime => ({ seconds: Math.floor(Date.now() / 1000), nanoseconds: 0 });

/**
 * Returns the UnixFS 1.5 mode and time of a node, or else those that the reference writes: the
 * epoch for a node with a mode only.
 */
function stated(
  { unixfs: { mode, mtime } }: UnixfsNode,
  usual: number,
  { exactNow, wholeSeconds }: Ahead,
): Pick<TextEntry, "mode" | "mtime"> {
  const time = mtime ?? (mode !== undefined ? EPOCH : exactNow ? unixNow() : wholeNow());
  return {
    mode: mode === undefined ? usual : mode & PERMISSIONS,
    mtime: wholeSeconds ? { ...time, nanoseconds: 0 } : time,
  };
}

/** Buffer of the current header. `JoinedPieces` copies it. */
const headerBlock = Buffer.alloc(blockSize);

function header({ name, target = "", ...rest }: TextEntry): Uint8Array {
  return writeEntry({ ...rest, name: binary(name), linkname: binary(target) }, headerBlock);
}

/** Converts text to its bytes, one per character. */
const binary = (text: string): string => (isAscii(text) ? text : textBytes(text).toString("latin1"));
