/** Reads ranges of files, with readahead. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { failure } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { fileSize, isDirectory, isSized, partOfFile, type UnixfsNode } from "./node.ts";
import { PartsLeft, type RangeReading, spanOf } from "./parts_left.ts";

export interface ReadRange {
  /** Offset of the first byte to read. */
  readonly offset?: number | undefined;
  /** Maximum number of bytes to read. */
  readonly length?: number | undefined;
}

export interface ReadFileOptions extends ReadRange {
  /**
   * The pool that `read` takes its buffers from. The consumer of the pieces releases each of them
   * to the pool after use.
   */
  readonly buffers?: BufferPool | undefined;
}

/** Number of parts after which other work of the process gets its turn. */
const TURN_PARTS = 256;

/**
 * Yields the data of the leaves below a node that does not have their sizes, for example after
 * `object/patch/add-link`. Offsets cannot be found there. As in the reference, data of nodes with
 * links is left out.
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

const notSeekable = () => failure("UNIXFS_TYPE_UNSUPPORTED", { reason: "file does not support seeking" });

/**
 * Returns the own bytes of a node, which begin at `start`, as far as they are within the range.
 * Returns undefined if none is.
 */
function dataIn({ unixfs: { data } }: UnixfsNode, start: number, from: number, to: number): Uint8Array | undefined {
  if (data === undefined || data.length === 0 || start >= to || start + data.length <= from) return undefined;
  return data.subarray(Math.max(0, from - start), Math.min(data.length, to - start));
}

/**
 * Yields the bytes of a file, or the target of a symlink, in constant memory. Blocks beyond the
 * range are not read.
 *
 * @throws NodeError IS_DIRECTORY at once; later for a block that is missing or not part of a file.
 * The bytes that were yielded before that are correct
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
  const range: RangeReading = { from: offset, to: Math.min(offset + length, fileSize(root)), read, buffers };
  const { from, to } = range;
  if (from >= to) return;
  const left = new PartsLeft(root, range);

  function* enter(node: UnixfsNode, start: number): Generator<Uint8Array, void, undefined> {
    left.enter(node, start);
    const own = dataIn(node, start, from, to);
    if (own !== undefined) yield own;
  }

  try {
    yield* enter(root, 0);
    for (let part = left.take(), steps = 1; part !== undefined; part = left.take(), steps += 1) {
      // Gives the event loop a turn, so that a disconnection of the client is noticed even if wrong
      // sizes lead through many nodes that have no bytes of the range.
      if (steps % TURN_PARTS === 0) await nextTurn();
      if (!("cid" in part)) {
        await left.spellOut(part);
        continue;
      }
      const node = partOfFile(part.cid, await left.read(part));
      if (isSized(node)) yield* enter(node, part.start + (spanOf(part, range)?.from ?? 0));
      else if (from > part.start) throw notSeekable();
      else yield* leavesOf(node, read, { length: to - part.start, buffers });
    }
  } finally {
    left.end();
  }
}
