/** Reading files: any range, with readahead. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { detachedCid, isLarge } from "../../formats/cid/detached.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { Span } from "../../storage/blockstore/store.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { Readahead } from "../dag/readahead.ts";
import { type ReadBlock, readSoon } from "../dag/reader.ts";
import { fileSize, isDirectory, isSized, partOfFile, type UnixfsNode } from "./node.ts";

export interface ReadRange {
  /** First byte to read. */
  readonly offset?: number | undefined;
  /** Bytes to read at most. */
  readonly length?: number | undefined;
}

export interface ReadFileOptions extends ReadRange {
  /** The pool that `read` takes its buffers from. Whoever consumes the pieces releases each to it after use. */
  readonly buffers?: BufferPool | undefined;
}

/**
 * Blocks that are read ahead: eight, or more small ones up to a number of bytes, since every request to a peer costs a
 * round trip; more of what comes quickly from far away. Of large blocks that the system has in memory it is one: the processor still has its bytes when they are sent.
 */
const READAHEAD = { blocks: 8, bytes: 2 * 1024 * 1024, maxBlocks: 256 };
/** More blocks are requested once half of these have come: neighbours in the store are then read in one go. */
const REFILL_PARTS = 2;
/** Bytes of a block from which on reading it alone costs no more than reading it together with its neighbours. */
const LARGE_PART = 64 * 1024;
/** Parts after which other work of the process gets its turn. */
const TURN_PARTS = 256;

/** Whether that many blocks and bytes are as much as is to be read ahead, or `times` as much. */
const isEnough = (blocks: number, bytes: number, times: number): boolean =>
  blocks >= READAHEAD.blocks * times && (bytes >= READAHEAD.bytes * times || blocks >= READAHEAD.maxBlocks * times);

const lengthOf = ({ length }: { readonly length: number }): number => length;

/** A subtree that holds `size` bytes of the file, from offset `start` on. */
interface Part {
  readonly cid: CID;
  readonly start: number;
  readonly size: number;
}

/** Parts below a node that come later: of very many only some are spelled out at a time. */
interface LaterParts {
  /** The node, which is read again: of thousands of readers each would else hold all of it. */
  readonly of: CID;
  /** The root, which is held anyway. */
  readonly root: UnixfsNode | undefined;
  /** Of the next link. */
  readonly index: number;
  /** Where in the file that begins. */
  readonly start: number;
}

/** Parts that are spelled out at a time; more than are read ahead. */
const MAX_PARTS = 512;

/** The next parts below a node that overlap the range `from` to `to`, in order; the last may stand for all others. */
function partsOf(node: UnixfsNode, later: LaterParts, from: number, to: number): (Part | LaterParts)[] {
  const { links, unixfs } = node;
  const parts: (Part | LaterParts)[] = [];
  let at = later.start;
  for (let { index } = later; index < links.length && at < to; index += 1) {
    if (parts.length === MAX_PARTS) {
      parts.push({ of: later.of, root: later.root, index, start: at });
      break;
    }
    const size = unixfs.blocksizes?.[index] as number;
    if (at + size > from) parts.push({ cid: detachedCid((links[index] as PbLink).cid), start: at, size });
    at += size;
  }
  return parts;
}

interface Reading {
  readonly from: number;
  readonly to: number;
  readonly read: ReadBlock;
  readonly buffers: BufferPool | undefined;
}

/** What is read of a leaf that is its bytes and nothing else, and is not all within the range; undefined for all others. */
function spanOf({ cid, start, size }: Part, { from, to, read }: Reading): Span | undefined {
  const isWhole = start >= from && start + size <= to;
  if (isWhole || cid.code !== raw || read.part === undefined) return undefined;
  return { from: Math.max(0, from - start), to: to - start };
}

/** The bytes themselves where they are at hand; small blocks that are read together are better read in one go. */
function readPart(part: Part, reading: Reading): Uint8Array | Promise<Uint8Array> {
  const { read } = reading;
  const span = spanOf(part, reading);
  const some = span && read.part?.(part.cid, span);
  return some ?? (part.size >= LARGE_PART ? readOrReject(read, part.cid) : read(part.cid));
}

/** What fails is told when the turn of the block comes, which may be read ahead. */
function readOrReject(read: ReadBlock, cid: CID): Uint8Array | Promise<Uint8Array> {
  try {
    return readSoon(read, cid);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** As `partsOf`, of what was not spelled out before. */
async function partsLater(later: LaterParts, { from, to, read, buffers }: Reading): Promise<(Part | LaterParts)[]> {
  if (later.root !== undefined) return partsOf(later.root, later, from, to);
  const bytes = await read(later.of);
  const parts = partsOf(partOfFile(later.of, bytes), later, from, to);
  if (isLarge(bytes)) buffers?.release(bytes);
  else buffers?.retain(bytes);
  return parts;
}

/**
 * The data of the leaves below a node that does not say their sizes, as of one that `object/patch/add-link` made: nobody
 * can tell where an offset is. As in the reference, data of nodes with links is left out.
 */
async function* leavesOf(
  root: UnixfsNode,
  read: ReadBlock,
  { length, buffers }: { readonly length: number; readonly buffers: BufferPool | undefined },
): AsyncGenerator<Uint8Array, void, undefined> {
  const stack: CID[] = [];
  let left = length;
  let steps = 0;
  for (let node: UnixfsNode | undefined = root; node !== undefined && left > 0; ) {
    steps += 1;
    if (steps % TURN_PARTS === 0) await nextTurn();
    const { links, unixfs } = node;
    // The CIDs of links are views of the block, and are used later.
    if (links[0] !== undefined) buffers?.retain(links[0].cid.multihash.bytes);
    for (let at = links.length - 1; at >= 0; at -= 1) stack.push((links[at] as PbLink).cid);
    const data = links.length === 0 ? (unixfs.data ?? new Uint8Array()).subarray(0, left) : new Uint8Array();
    left -= data.length;
    if (data.length > 0) yield data;
    const next = stack.pop();
    node = next && partOfFile(next, await read(next));
  }
}

const notSeekable = () => new NodeError("file does not support seeking");

/** The bytes of a node itself, which begin at `start`, as far as they are within the range; undefined when none is. */
function dataIn({ unixfs: { data } }: UnixfsNode, start: number, from: number, to: number): Uint8Array | undefined {
  if (data === undefined || data.length === 0 || start >= to || start + data.length <= from) return undefined;
  return data.subarray(Math.max(0, from - start), Math.min(data.length, to - start));
}

/**
 * The bytes of a file, or the target of a symlink, piece by piece in constant memory. Blocks beyond the range are not
 * read.
 *
 * @throws NodeError IS_DIRECTORY at once; later for a block that is missing or not part of a file: what was yielded
 *   before that is correct
 */
export function readFile(
  root: UnixfsNode,
  read: ReadBlock,
  options: ReadFileOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  if (isDirectory(root)) throw failure("IS_DIRECTORY");
  return pieces(root, read, options);
}

async function releaseTo(buffers: BufferPool | undefined, coming: Uint8Array | Promise<Uint8Array>): Promise<void> {
  const bytes = await Promise.resolve(coming).catch(() => undefined);
  if (bytes !== undefined) buffers?.release(bytes);
}

async function* pieces(
  root: UnixfsNode,
  read: ReadBlock,
  { offset = 0, length = Number.POSITIVE_INFINITY, buffers }: ReadFileOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (!isSized(root)) {
    if (offset > 0) throw notSeekable();
    yield* leavesOf(root, read, { length, buffers });
    return;
  }
  const range: Reading = { from: offset, to: Math.min(offset + length, fileSize(root)), read, buffers };
  const { from, to } = range;
  const requested = new Readahead<Part, Uint8Array>(lengthOf, READAHEAD.bytes);
  /** How many of the parts that come next have been requested, and their bytes. */
  const next = { blocks: 0, bytes: 0 };
  const stack: (Part | LaterParts)[] = [];

  function* enter(node: UnixfsNode, start: number): Generator<Uint8Array, void, undefined> {
    const [first] = node.links;
    // Whoever gets the bytes of the node itself may release its block.
    if (first !== undefined) {
      const below = start + (node.unixfs.data?.length ?? 0);
      const later = { of: detachedCid(node.cid), root: node === root ? root : undefined, index: 0, start: below };
      push(partsOf(node, later, from, to));
      const { bytes } = first.cid.multihash;
      // CIDs of parts are views of a block that is not large. The root may be read from again.
      if (node === root || !isLarge(bytes)) buffers?.retain(bytes);
    }
    const own = dataIn(node, start, from, to);
    if (own !== undefined) yield own;
  }

  function push(parts: readonly (Part | LaterParts)[]): void {
    for (const part of parts.toReversed()) stack.push(part);
    if (parts.length > 0) Object.assign(next, { blocks: 0, bytes: 0 });
  }

  function requestAhead(): void {
    if (isEnough(next.blocks, next.bytes, requested.reach / REFILL_PARTS)) return;
    Object.assign(next, { blocks: 0, bytes: 0 });
    for (let at = stack.length - 1; at >= 0 && !isEnough(next.blocks, next.bytes, requested.reach); at -= 1) {
      const part = stack[at] as Part | LaterParts;
      if (!("cid" in part)) return;
      // Sizes that are said may be wrong: the first few tell.
      if (requested.isUntried && requested.size >= READAHEAD.blocks) return;
      if (!requested.has(part) && !requested.ask(part, part.size, () => readPart(part, range))) return;
      next.blocks += 1;
      next.bytes += requested.bytesOf(part.size);
      if (requested.held(part) !== undefined) return;
    }
  }

  if (from < to) yield* enter(root, 0);
  try {
    for (let part = stack.pop(), steps = 1; part !== undefined; part = stack.pop(), steps += 1) {
      // Whoever leaves is heard, also when sizes that are wrong lead through nodes in memory and to no bytes.
      if (steps % TURN_PARTS === 0) await nextTurn();
      if (!("cid" in part)) {
        push(await partsLater(part, range));
        continue;
      }
      const ahead = requested.take(part);
      if (ahead !== undefined) {
        next.blocks -= 1;
        next.bytes -= requested.bytesOf(part.size);
      }
      const reading = ahead ?? readPart(part, range);
      requestAhead();
      const node = partOfFile(part.cid, await reading);
      if (isSized(node)) yield* enter(node, part.start + (spanOf(part, range)?.from ?? 0));
      else if (from > part.start) throw notSeekable();
      else yield* leavesOf(node, read, { length: to - part.start, buffers });
    }
  } finally {
    for (const coming of requested.end()) releaseTo(buffers, coming);
  }
}
