/** Reading files: any range, with readahead. */
import type { CID } from "multiformats/cid";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { failure, NodeError } from "../../util/errors.ts";
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

/** Whether that many blocks and bytes are as much as may be read ahead, or one of `parts` equal parts of it. */
const isEnough = (blocks: number, bytes: number, parts = 1): boolean =>
  blocks >= READAHEAD.blocks / parts && (bytes >= READAHEAD.bytes / parts || blocks >= READAHEAD.maxBlocks / parts);

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
    const size = unixfs.blocksizes?.[index];
    if (size === undefined) throw new NodeError("incorrectly formatted unixfs: a link without its size");
    if (at < to && at + size > from) parts.push({ cid: (links[index] as PbLink).cid, start: at, size });
    at += size;
  }
  return parts;
}

/** The bytes of a node itself, which begin at `start`, as far as they are within the range; undefined when none is. */
function dataIn({ unixfs: { data } }: UnixfsNode, start: number, from: number, to: number): Uint8Array | undefined {
  if (data === undefined || start >= to || start + data.length <= from) return undefined;
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
  const from = offset;
  const to = Math.min(offset + length, fileSize(root));
  const requested = new Map<Part, Promise<Uint8Array>>();
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
      next.blocks += 1;
      next.bytes += part.size;
      if (requested.has(part)) continue;
      const coming = read(part.cid);
      coming.catch(() => {});
      requested.set(part, coming);
    }
  }

  if (from >= to) return;
  yield* enter(root, 0);
  try {
    for (let part = stack.pop(); part !== undefined; part = stack.pop()) {
      const reading = requested.get(part) ?? read(part.cid);
      if (requested.delete(part)) {
        next.blocks -= 1;
        next.bytes -= part.size;
      }
      requestAhead();
      const node = unixfsNode(part.cid, await reading);
      if (node === undefined || (node.unixfs.type !== "File" && node.unixfs.type !== "Raw")) {
        throw new NodeError(`${part.cid} is not a part of a file`);
      }
      yield* enter(node, part.start);
    }
  } finally {
    if (buffers !== undefined) {
      for (const coming of requested.values()) coming.then((bytes) => buffers.release(bytes)).catch(() => {});
    }
  }
}
