/** Reading files: any range, with readahead. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { Readahead } from "../dag/readahead.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { fileSize, isDirectory, type UnixfsNode, unixfsNode } from "./node.ts";

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
 * round trip.
 */
const READAHEAD = { blocks: 8, bytes: 2 * 1024 * 1024, maxBlocks: 256 };
/** More blocks are requested once half of these have come: neighbours in the store are then read in one go. */
const REFILL_PARTS = 2;
/** Parts after which other work of the process gets its turn. */
const TURN_PARTS = 256;

/** Whether that many blocks and bytes are as much as may be read ahead, or one of `parts` equal parts of it. */
const isEnough = (blocks: number, bytes: number, parts = 1): boolean =>
  blocks >= READAHEAD.blocks / parts && (bytes >= READAHEAD.bytes / parts || blocks >= READAHEAD.maxBlocks / parts);

const lengthOf = ({ length }: { readonly length: number }): number => length;

/** A subtree that holds `size` bytes of the file, from offset `start` on. */
interface Part {
  readonly cid: CID;
  readonly start: number;
  readonly size: number;
}

/** The parts below a node that overlap the range `from` to `to`, in order. */
function partsOf({ links, unixfs }: UnixfsNode, start: number, from: number, to: number): Part[] {
  const parts: Part[] = [];
  let at = start + (unixfs.data?.length ?? 0);
  for (let index = 0; index < links.length; index += 1) {
    const size = unixfs.blocksizes?.[index] as number;
    if (at < to && at + size > from) parts.push({ cid: (links[index] as PbLink).cid, start: at, size });
    at += size;
  }
  return parts;
}

/** Whether it says how much of the file is below each link. */
const isSized = ({ links, unixfs }: UnixfsNode): boolean => links.length === (unixfs.blocksizes?.length ?? 0);

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

/** @throws NodeError for a block that is no part of a file */
function partOfFile(cid: CID, bytes: Uint8Array): UnixfsNode {
  const node = unixfsNode(cid, bytes);
  if (node !== undefined && (node.unixfs.type === "File" || node.unixfs.type === "Raw")) return node;
  throw new NodeError(`${cid} is not a part of a file`);
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
  const from = offset;
  const to = Math.min(offset + length, fileSize(root));
  const requested = new Readahead<Part, Uint8Array>(lengthOf);
  /** How many of the parts that come next have been requested, and their bytes. */
  const next = { blocks: 0, bytes: 0 };
  const stack: Part[] = [];

  function* enter(node: UnixfsNode, start: number): Generator<Uint8Array, void, undefined> {
    // The CIDs of links are views of the block, and are used later.
    const [first] = node.links;
    if (first !== undefined) buffers?.retain(first.cid.multihash.bytes);
    const own = dataIn(node, start, from, to);
    if (own !== undefined) yield own;
    const parts = partsOf(node, start, from, to);
    // Not by spreading: there may be more of them than a call can have arguments.
    for (let at = parts.length - 1; at >= 0; at -= 1) stack.push(parts[at] as Part);
    if (parts.length > 0) Object.assign(next, { blocks: 0, bytes: 0 });
  }

  function requestAhead(): void {
    if (isEnough(next.blocks, next.bytes, REFILL_PARTS)) return;
    Object.assign(next, { blocks: 0, bytes: 0 });
    for (let at = stack.length - 1; at >= 0 && !isEnough(next.blocks, next.bytes); at -= 1) {
      const part = stack[at] as Part;
      // Sizes that are said may be wrong: the first few tell.
      if (requested.isUntried && requested.size >= READAHEAD.blocks) return;
      if (!requested.has(part) && !requested.ask(part, part.size, () => read(part.cid))) return;
      next.blocks += 1;
      next.bytes += requested.bytesOf(part.size);
    }
  }

  if (from >= to) return;
  yield* enter(root, 0);
  try {
    for (let part = stack.pop(), steps = 1; part !== undefined; part = stack.pop(), steps += 1) {
      // Whoever leaves is heard, also when sizes that are wrong lead through nodes in memory and to no bytes.
      if (steps % TURN_PARTS === 0) await nextTurn();
      const ahead = requested.take(part);
      if (ahead !== undefined) {
        next.blocks -= 1;
        next.bytes -= requested.bytesOf(part.size);
      }
      const reading = ahead ?? read(part.cid);
      requestAhead();
      const node = partOfFile(part.cid, await reading);
      if (isSized(node)) yield* enter(node, part.start);
      else if (from > part.start) throw notSeekable();
      else yield* leavesOf(node, read, { length: to - part.start, buffers });
    }
  } finally {
    for (const coming of requested.end()) coming.then((bytes) => buffers?.release(bytes)).catch(() => {});
  }
}
