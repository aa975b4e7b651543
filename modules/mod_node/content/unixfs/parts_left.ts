/** The parts of a file that are still to be read, in order. Some of them are requested ahead. */
import type { CID } from "multiformats/cid";
import { raw } from "../../formats/cid/codecs.ts";
import { detachedCid, isLarge } from "../../formats/cid/detached.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { Span } from "../../storage/blockstore/store.ts";
import { Readahead } from "../dag/readahead.ts";
import { type ReadBlock, readSoon } from "../dag/reader.ts";
import { isSized, partOfFile, type UnixfsNode, unixfsNode } from "./node.ts";

/**
 * The base amount that is read ahead, because every request to a peer costs a round trip: `blocks`
 * blocks, or more small ones until they have `bytes`, up to `maxBlocks`. A multiple of it is read
 * ahead if blocks arrive quickly from distant peers (`Readahead.reach`). Half of it fills two large
 * messages of a nearby peer, so that the other half can be in transit. Only one large block is read
 * ahead if the system has it in memory: the processor cache then still has its bytes when they are
 * sent.
 */
const READAHEAD = { blocks: 8, bytes: 4 * 1024 * 1024, maxBlocks: 256 };
/**
 * When this part of the base amount was used, as much is requested together: one read then fetches
 * neighbours in the store.
 */
const REFILL = 1 / 2;
/**
 * If less than the whole amount could be requested, more is requested when this part of the
 * requested blocks was used.
 */
const LOOKED_AT_AGAIN = 1 / 8;
/**
 * Size of a block, in bytes, from which on reading it alone costs no more than reading it together
 * with its neighbours.
 */
const LARGE_PART = 64 * 1024;
/** Whether so many blocks and bytes amount to `times` the base amount. */
const isEnough = ({ blocks, bytes }: { readonly blocks: number; readonly bytes: number }, times: number): boolean =>
  blocks >= READAHEAD.blocks * times && (bytes >= READAHEAD.bytes * times || blocks >= READAHEAD.maxBlocks * times);

const lengthOf = ({ length }: { readonly length: number }): number => length;

/** A subtree that holds `size` bytes of the file, from offset `start` on. */
export interface UnreadPart {
  readonly cid: CID;
  readonly start: number;
  readonly size: number;
}

/**
 * The remaining parts below a node. If a node has very many parts, only some of them are expanded
 * at a time.
 */
export interface LaterParts {
  /** The node. It is read again, because thousands of readers would otherwise keep it in memory. */
  readonly of: CID;
  /** The root, which stays in memory anyway. */
  readonly root: UnixfsNode | undefined;
  /** Index of the next link. */
  readonly index: number;
  /** Offset in the file where the next link begins. */
  readonly start: number;
}

/** Maximum number of parts that are expanded at a time. It is more than what is read ahead. */
const MAX_PARTS = 512;

/**
 * Returns the next parts below a node that overlap the range `from` to `to`, in order. The last may
 * stand for all remaining parts.
 */
function partsOf(node: UnixfsNode, later: LaterParts, from: number, to: number): (UnreadPart | LaterParts)[] {
  const { links, unixfs } = node;
  const parts: (UnreadPart | LaterParts)[] = [];
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

export interface RangeReading {
  readonly from: number;
  readonly to: number;
  readonly read: ReadBlock;
  readonly buffers: BufferPool | undefined;
}

/**
 * Returns the bytes to read of a raw leaf that is only partly within the range. Returns undefined
 * for all other parts.
 */
export function spanOf({ cid, start, size }: UnreadPart, { from, to, read }: RangeReading): Span | undefined {
  const isWhole = start >= from && start + size <= to;
  if (isWhole || cid.code !== raw || read.part === undefined) return undefined;
  return { from: Math.max(0, from - start), to: to - start };
}

/**
 * Reads a part; without a promise if it is available. Small blocks always return a promise, so that
 * they are read together.
 */
function readPart(part: UnreadPart, reading: RangeReading): Uint8Array | Promise<Uint8Array> {
  const { read } = reading;
  const span = spanOf(part, reading);
  const some = span && read.part?.(part.cid, span);
  return some ?? (part.size >= LARGE_PART ? readOrReject(read, part.cid) : read(part.cid));
}

/**
 * Returns errors as rejections: the block may be read ahead, and the error must wait for its turn.
 */
function readOrReject(read: ReadBlock, cid: CID): Uint8Array | Promise<Uint8Array> {
  try {
    return readSoon(read, cid);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Like `partsOf`, for the parts that were not expanded before. */
async function partsLater(
  later: LaterParts,
  { from, to, read, buffers }: RangeReading,
): Promise<(UnreadPart | LaterParts)[]> {
  if (later.root !== undefined) return partsOf(later.root, later, from, to);
  const bytes = await read(later.of);
  const parts = partsOf(partOfFile(later.of, bytes), later, from, to);
  if (isLarge(bytes)) buffers?.release(bytes);
  else buffers?.retain(bytes);
  return parts;
}

async function releaseTo(buffers: BufferPool | undefined, coming: Uint8Array | Promise<Uint8Array>): Promise<void> {
  const bytes = await Promise.resolve(coming).catch(() => undefined);
  if (bytes !== undefined) buffers?.release(bytes);
}

export class PartsLeft {
  readonly #root: UnixfsNode;
  readonly #reading: RangeReading;
  readonly #requested = new Readahead<UnreadPart, Uint8Array>(lengthOf, {
    bytes: READAHEAD.bytes,
    blocks: READAHEAD.maxBlocks,
  });
  /** Number and bytes of the next parts that have been requested. */
  #next = { blocks: 0, bytes: 0 };
  /** More blocks are requested when no more than this number of requested ones are left. */
  #lookAgainAt = 0;
  /** The next part is the last element. */
  readonly #stack: (UnreadPart | LaterParts)[] = [];

  constructor(root: UnixfsNode, reading: RangeReading) {
    this.#root = root;
    this.#reading = reading;
  }

  /** Removes the next part, which must be read or expanded; undefined at the end. */
  take(): UnreadPart | LaterParts | undefined {
    return this.#stack.pop();
  }

  /** Returns the bytes of a part that was taken, and requests further parts. */
  read(part: UnreadPart): Uint8Array | Promise<Uint8Array> {
    const ahead = this.#requested.take(part);
    if (ahead !== undefined) {
      this.#next.blocks -= 1;
      this.#next.bytes -= this.#requested.bytesOf(part.size);
    }
    const reading = ahead ?? readPart(part, this.#reading);
    this.#requestAhead();
    return reading;
  }

  async spellOut(later: LaterParts): Promise<void> {
    this.#push(await partsLater(later, this.#reading));
  }

  /** Adds the parts below a node, whose own bytes begin at `start`. They come next. */
  enter(node: UnixfsNode, start: number): void {
    this.#push(this.#partsBelow(node, start));
  }

  /** To be called when the reader stops. */
  end(): void {
    for (const coming of this.#requested.end()) void releaseTo(this.#reading.buffers, coming);
  }

  #push(parts: readonly (UnreadPart | LaterParts)[]): void {
    for (const part of parts.toReversed()) this.#stack.push(part);
    if (parts.length > 0) this.#next = { blocks: 0, bytes: 0 };
  }

  #partsBelow(node: UnixfsNode, start: number): (UnreadPart | LaterParts)[] {
    const [first] = node.links;
    // The consumer of the node's own bytes may release its block.
    if (first === undefined) return [];
    const { from, to, buffers } = this.#reading;
    const isRoot = node === this.#root;
    const below = start + (node.unixfs.data?.length ?? 0);
    const later = { of: detachedCid(node.cid), root: isRoot ? node : undefined, index: 0, start: below };
    const { bytes } = first.cid.multihash;
    // CIDs of parts are views of the block if it is not large. The root may be read again.
    if (isRoot || !isLarge(bytes)) buffers?.retain(bytes);
    return partsOf(node, later, from, to);
  }

  #requestAhead(): void {
    const { reach } = this.#requested;
    if (this.#next.blocks > this.#lookAgainAt || isEnough(this.#next, reach - REFILL)) return;
    const next = (this.#next = { blocks: 0, bytes: 0 });
    this.#requestUpTo(reach, next);
    this.#lookAgainAt = isEnough(next, reach) ? next.blocks : next.blocks * (1 - LOOKED_AT_AGAIN);
  }

  /**
   * Adds to `next` those of the next parts that are requested, until it is enough or nothing more
   * can be requested now.
   */
  #requestUpTo(reach: number, next: { blocks: number; bytes: number }): void {
    const requested = this.#requested;
    for (let at = this.#stack.length - 1; at >= 0 && !isEnough(next, reach); at -= 1) {
      const part = this.#stack[at] as UnreadPart | LaterParts;
      if (!("cid" in part)) return;
      // Claimed sizes may be wrong. The first few blocks show the real ones.
      if (requested.isUntried && requested.size >= READAHEAD.blocks) return;
      const below = this.#partsOfNext(part);
      if (below !== undefined) {
        this.#stack.splice(at, 1, ...below.toReversed());
        at += below.length;
        continue;
      }
      if (!requested.has(part) && !requested.request(part, part.size, () => readPart(part, this.#reading))) return;
      next.blocks += 1;
      next.bytes += requested.bytesOf(part.size);
      if (requested.atHand(part) !== undefined) return;
    }
  }

  /**
   * Returns the parts below a part that has arrived early and is an interior node without bytes of
   * its own. Returns undefined for any other part.
   */
  #partsOfNext(part: UnreadPart): (UnreadPart | LaterParts)[] | undefined {
    const bytes = this.#requested.received(part);
    if (bytes === undefined || bytes.length >= part.size || part.cid.code === raw) return undefined;
    const node = unixfsNode(part.cid, bytes);
    const isInner = node?.unixfs.type === "File" && node.links.length > 0 && isSized(node);
    if (!isInner || (node.unixfs.data?.length ?? 0) > 0) return undefined;
    this.#requested.take(part);
    return this.#partsBelow(node, part.start);
  }
}
