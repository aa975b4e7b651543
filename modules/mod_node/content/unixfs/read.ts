/** Reading files: ranges that seek, blocks asked for before their turn. */
import type { CID } from "multiformats/cid";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { fileSize, isDirectory, type UnixfsNode, unixfsNode } from "./node.ts";

export interface ReadRange {
  /** Bytes to pass over. */
  readonly offset?: number | undefined;
  /** Bytes to give at most. */
  readonly length?: number | undefined;
}

export interface ReadFileOptions extends ReadRange {
  /** Those that `read` reads into. Whoever takes the pieces gives each back here when it is done with. */
  readonly buffers?: BufferPool | undefined;
}

/**
 * Blocks that are asked for before their turn: eight, and more of small ones as long as these are not many bytes, since
 * each asking of another node takes its time.
 */
const READAHEAD = { blocks: 8, bytes: 2 * 1024 * 1024, most: 256 };
/** More are asked for when half of them are there: what stands together in the store is read in one go. */
const REFILL_PART = 2;

/** A subtree with so many bytes of the file, from `start` on. */
interface Part {
  readonly cid: CID;
  readonly start: number;
  readonly size: number;
}

/** The parts below a node that overlap the range, in order. */
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

/**
 * The bytes of a file (or of a symlink: its target). Memory does not grow with it; what it is read from is not read
 * beyond the range.
 *
 * @throws NodeError IS_DIRECTORY at once; later at a block that cannot be had or is no part of a file: what was yielded
 *   before is right
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
  const asked = new Map<Part, Promise<Uint8Array>>();
  /** Of the parts that come next, one after the other: how many have been asked for, and their bytes. */
  const next = { blocks: 0, bytes: 0 };
  const stack: Part[] = [];

  function* enter(node: UnixfsNode, start: number): Generator<Uint8Array, void, undefined> {
    // Links are parts of their block, and are followed later.
    const [first] = node.links;
    if (first !== undefined) buffers?.retain(first.cid.multihash.bytes);
    const data = node.unixfs.data;
    if (data !== undefined && start < to && start + data.length > from) {
      yield data.subarray(Math.max(0, from - start), Math.min(data.length, to - start));
    }
    const parts = partsOf(node, start, from, to);
    // Not as arguments: there may be more of them than a call can have.
    for (let at = parts.length - 1; at >= 0; at -= 1) stack.push(parts[at] as Part);
    if (parts.length > 0) Object.assign(next, { blocks: 0, bytes: 0 });
  }

  /** Whether so many and so much are as much as may be asked for, or a part of that. */
  const isEnough = (blocks: number, bytes: number, part = 1) =>
    blocks >= READAHEAD.blocks / part && (bytes >= READAHEAD.bytes / part || blocks >= READAHEAD.most / part);

  function askAhead(): void {
    if (isEnough(next.blocks, next.bytes, REFILL_PART)) return;
    Object.assign(next, { blocks: 0, bytes: 0 });
    for (let at = stack.length - 1; at >= 0 && !isEnough(next.blocks, next.bytes); at -= 1) {
      const part = stack[at] as Part;
      next.blocks += 1;
      next.bytes += part.size;
      if (asked.has(part)) continue;
      const coming = read(part.cid);
      coming.catch(() => {});
      asked.set(part, coming);
    }
  }

  if (from >= to) return;
  yield* enter(root, 0);
  try {
    for (let part = stack.pop(); part !== undefined; part = stack.pop()) {
      const asking = asked.get(part) ?? read(part.cid);
      if (asked.delete(part)) {
        next.blocks -= 1;
        next.bytes -= part.size;
      }
      askAhead();
      const node = unixfsNode(part.cid, await asking);
      if (node === undefined || (node.unixfs.type !== "File" && node.unixfs.type !== "Raw")) {
        throw new NodeError(`${part.cid} is not a part of a file`);
      }
      yield* enter(node, part.start);
    }
  } finally {
    if (buffers !== undefined) {
      for (const coming of asked.values()) coming.then((bytes) => buffers.release(bytes)).catch(() => {});
    }
  }
}
