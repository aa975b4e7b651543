/** Writes UnixFS DAGs as tar archives, with the layout of the reference's `get`. */
import { posix } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { blockSize, plainHeader } from "../../formats/tar/header.ts";
import { padding, writeHeader } from "../../formats/tar/write.ts";
import { NodeError } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { entries } from "./list.ts";
import { fileSize, isDirectory, type UnixfsNode } from "./node.ts";
import { openFile } from "./open.ts";
import { readFile } from "./read.ts";

/** Entries after which other work of the process gets its turn. */
const TURN_ENTRIES = 256;
const trailer = new Uint8Array(2 * blockSize);

/** The text of later versions of the reference: unpacking such an archive could overwrite other files. */
const outside = "relative UnixFS paths outside the root are not allowed, use CAR instead";

interface Entry {
  readonly name: string;
  /** "0" file, "2" symlink, "5" directory. */
  readonly type: "0" | "2" | "5";
  readonly mode: number;
  readonly size: number;
  readonly target?: string;
  /** Seconds since the epoch. */
  readonly mtime: number;
}

/**
 * `name` is the name of the root; only a few blocks of a file, the first blocks of some entries that follow, and one node of each
 * level above are held.
 *
 * @throws NodeError at an entry that would be unpacked outside of the root
 */
export const exportTar = (
  root: UnixfsNode,
  name: string,
  read: ReadBlock,
): AsyncGenerator<Uint8Array, void, undefined> => joined(tarOf(root, name, read));

/** Small pieces are joined up to this many bytes, and held for so many milliseconds at most while others come. */
const MAX_JOINED_BYTES = 32 * 1024;
const MAX_HELD_MS = 500;

async function* joined(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let held: Uint8Array[] = [];
  let length = 0;
  let since = 0;
  try {
    for await (const piece of pieces) {
      if (length === 0) since = performance.now();
      held.push(piece);
      length += piece.length;
      if (length < MAX_JOINED_BYTES && performance.now() - since < MAX_HELD_MS) continue;
      const taken = held;
      [held, length] = [[], 0];
      yield* sent(taken);
    }
  } catch (error) {
    // What came before it is correct.
    yield* sent(held);
    throw error;
  }
  yield* sent(held);
}

/** Large pieces go out as they are. */
function* sent(pieces: readonly Uint8Array[]): Generator<Uint8Array, void, undefined> {
  const last = pieces.at(-1);
  if (last !== undefined && last.length >= MAX_JOINED_BYTES) {
    if (pieces.length > 1) yield Buffer.concat(pieces.slice(0, -1));
    yield last;
  } else if (last !== undefined) yield pieces.length === 1 ? last : Buffer.concat(pieces);
}

async function* tarOf(root: UnixfsNode, name: string, read: ReadBlock): AsyncGenerator<Uint8Array, void, undefined> {
  const levels: Level[] = [];
  const ahead: Ahead = { read, opened: 0 };
  let at: Named | undefined = { name, node: root };
  for (let steps = 1; at !== undefined; at = await nextEntry(levels, ahead), steps += 1) {
    // Whoever leaves is heard, also when all blocks are in memory.
    if (steps % TURN_ENTRIES === 0) await nextTurn();
    // Joined anew for each entry: the full names of all levels of a deep tree could exceed the memory.
    const path = posix.normalize([...levels.map((level) => level.name), at.name].join("/"));
    if (levels.length > 0 && !path.startsWith(`${name}/`)) throw new NodeError(outside);
    if (isDirectory(at.node)) {
      yield header({ name: path, type: "5", size: 0, ...stated(at.node, 0o777) });
      levels.push({ name: at.name, links: entries(at.node, read), next: [], over: false });
    } else {
      yield* leaf(at.node, path, read);
    }
  }
  yield trailer;
}

interface Named {
  readonly name: string;
  readonly node: UnixfsNode;
}

/** A directory that is being listed. */
interface Level {
  readonly name: string;
  readonly links: AsyncIterator<PbLink, void>;
  /** Entries that are being opened, in their order. */
  readonly next: { readonly name: string; readonly node: Promise<UnixfsNode> }[];
  /** There are no more links. */
  over: boolean;
}

/** Entries of one directory, and of all levels of a tree, that are opened ahead: neighbours in the store are read in one go. */
const AHEAD = { entries: 16, all: 64, bytes: 256 * 1024 };

interface Ahead {
  readonly read: ReadBlock;
  /** On all levels. */
  opened: number;
}

/** The next entry, in the deepest directory that has one. Iterative, since trees may be arbitrarily deep. */
async function nextEntry(levels: Level[], ahead: Ahead): Promise<Named | undefined> {
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    await openAhead(level, ahead);
    const next = level.next.shift();
    if (next !== undefined) {
      ahead.opened -= 1;
      return { name: next.name, node: await next.node };
    }
    levels.pop();
  }
  return undefined;
}

/**
 * At least the next one. More are opened once half of them were taken, all at once, since blocks that are asked for together
 * are read together; and none beyond a large one.
 */
async function openAhead(level: Level, ahead: Ahead): Promise<void> {
  if (level.over || level.next.length > AHEAD.entries / 2) return;
  const room = Math.min(AHEAD.entries - level.next.length, AHEAD.all - ahead.opened);
  if (room <= 0 && level.next.length > 0) return;
  const links: PbLink[] = [];
  let fault: Promise<never> | undefined;
  do {
    const { value, failed } = await listed(level.links);
    level.over = value === undefined;
    if (value !== undefined) links.push(value);
    else if (failed !== undefined) fault = Promise.reject(failed);
  } while (!level.over && links.length < room && (links.at(-1)?.size ?? 0) <= AHEAD.bytes);
  ahead.opened += links.length;
  for (const { name, cid } of links) level.next.push({ name, node: openFile(cid, ahead.read) });
  if (fault !== undefined) level.next.push({ name: "", node: fault });
  // Each is told when its turn comes, after what is before it.
  for (const { node } of level.next) node.catch(() => {});
}

async function listed(links: Level["links"]): Promise<{ readonly value?: PbLink; readonly failed?: unknown }> {
  try {
    const { done, value } = await links.next();
    return done === true ? {} : { value };
  } catch (failed) {
    return { failed };
  }
}

const now = () => Math.floor(Date.now() / 1000);

const PERMISSIONS = 0o777;
/** The latest time that an archive holds in octal digits: in the year 2242. */
const MAX_TIME = 8 ** 11 - 1;

/** What UnixFS 1.5 says of a node, else what the reference writes. */
function stated({ unixfs: { mode, mtime } }: UnixfsNode, usual: number): Pick<Entry, "mode" | "mtime"> {
  return { mode: mode === undefined ? usual : mode & PERMISSIONS, mtime: timeIn(mtime) ?? now() };
}

const timeIn = (mtime: number | undefined): number | undefined =>
  mtime === undefined || mtime < 0 || mtime > MAX_TIME ? undefined : mtime;

async function* leaf(node: UnixfsNode, name: string, read: ReadBlock): AsyncGenerator<Uint8Array, void, undefined> {
  const { unixfs } = node;
  if (unixfs.type === "Symlink") {
    const target = Buffer.from(unixfs.data ?? []).toString();
    yield header({ name, type: "2", size: 0, target, mode: 0o777, mtime: timeIn(unixfs.mtime) ?? 0 });
    return;
  }
  const size = fileSize(node);
  yield header({ name, type: "0", size, ...stated(node, 0o644) });
  let written = 0;
  for await (const piece of readFile(node, read)) {
    written += piece.length;
    if (written > size) throw new NodeError("archive/tar: write too long");
    yield piece;
  }
  if (written < size) throw new NodeError(`archive/tar: missed writing ${size - written} bytes`);
  if (padding(size) > 0) yield trailer.subarray(0, padding(size));
}

function header({ name, type, mode, size, target = "", mtime }: Entry): Uint8Array {
  const time = { seconds: mtime, nanoseconds: 0 };
  return writeHeader({ ...plainHeader(type, binary(name)), linkname: binary(target), mode, size, mtime: time });
}

/** Text as its bytes, one character for each. */
const binary = (text: string): string => Buffer.from(text).toString("latin1");
