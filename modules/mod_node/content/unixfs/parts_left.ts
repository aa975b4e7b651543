/**
 * What is left of a file while it is read: the parts whose turn comes next, of which some are
 * requested ahead.
 */
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
 * What is read ahead, since every request to a peer costs a round trip: `blocks` blocks, and of
 * small ones as many more as make `bytes`, up to `maxBlocks`; several times as much of what comes
 * quickly from far away (`Readahead.reach`). Half of it fills two large messages of a peer near by,
 * so that the other half can be on its way. Of large blocks that the system has in memory only one
 * is read ahead: the processor still has its bytes when they are sent.
 */
const READAHEAD = { blocks: 8, bytes: 4 * 1024 * 1024, maxBlocks: 256 };
/**
 * Part of these that are requested together, once as many have come: neighbours in the store are
 * then read in one go.
 */
const REFILL = 1 / 2;
/**
 * Part of the requested blocks that are read until those are looked at again, where there was no
 * more to request.
 */
const LOOKED_AT_AGAIN = 1 / 8;
/**
 * Bytes of a block from which on reading it alone costs no more than reading it together with its
 * neighbours.
 */
const LARGE_PART = 64 * 1024;
/** Whether that many blocks and bytes are as much as is to be read ahead, or `times` as much. */
const isEnough = ({ blocks, bytes }: { readonly blocks: number; readonly bytes: number }, times: number): boolean =>
  blocks >= READAHEAD.blocks * times && (bytes >= READAHEAD.bytes * times || blocks >= READAHEAD.maxBlocks * times);

const lengthOf = ({ length }: { readonly length: number }): number => length;

/** A subtree that holds `size` bytes of the file, from offset `start` on. */
export interface Part {
  readonly cid: CID;
  readonly start: number;
  readonly size: number;
}

/** Parts below a node that come later: of very many only some are spelled out at a time. */
export interface LaterParts {
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

/**
 * The next parts below a node that overlap the range `from` to `to`, in order; the last may stand
 * for all others.
 */
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

export interface Reading {
  readonly from: number;
  readonly to: number;
  readonly read: ReadBlock;
  readonly buffers: BufferPool | undefined;
}

/**
 * What is read of a leaf that is its bytes and nothing else, and is not all within the range;
 * undefined for all others.
 */
export function spanOf({ cid, start, size }: Part, { from, to, read }: Reading): Span | undefined {
  const isWhole = start >= from && start + size <= to;
  if (isWhole || cid.code !== raw || read.part === undefined) return undefined;
  return { from: Math.max(0, from - start), to: to - start };
}

/**
 * The bytes themselves where they are at hand; small blocks that are read together are better read
 * in one go.
 */
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

async function releaseTo(buffers: BufferPool | undefined, coming: Uint8Array | Promise<Uint8Array>): Promise<void> {
  const bytes = await Promise.resolve(coming).catch(() => undefined);
  if (bytes !== undefined) buffers?.release(bytes);
}

export class PartsLeft {
  readonly #root: UnixfsNode;
  readonly #reading: Reading;
  readonly #requested = new Readahead<Part, Uint8Array>(lengthOf, {
    bytes: READAHEAD.bytes,
    blocks: READAHEAD.maxBlocks,
  });
  /** How many of the parts that come next have been requested, and their bytes. */
  #next = { blocks: 0, bytes: 0 };
  /** Of these blocks, how many are left when more are requested at the earliest. */
  #lookAgainAt = 0;
  /** The last is the next. */
  readonly #stack: (Part | LaterParts)[] = [];

  constructor(root: UnixfsNode, reading: Reading) {
    this.#root = root;
    this.#reading = reading;
  }

  /** The part whose turn it is, to be read or spelled out; undefined at the end. */
  take(): Part | LaterParts | undefined {
    return this.#stack.pop();
  }

  /** The bytes of a part that was taken, behind which others are requested. */
  read(part: Part): Uint8Array | Promise<Uint8Array> {
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

  /** The parts below a node, whose own bytes begin at `start`, come next. */
  enter(node: UnixfsNode, start: number): void {
    this.#push(this.#partsBelow(node, start));
  }

  /** Nobody reads on. */
  end(): void {
    for (const coming of this.#requested.end()) void releaseTo(this.#reading.buffers, coming);
  }

  #push(parts: readonly (Part | LaterParts)[]): void {
    for (const part of parts.toReversed()) this.#stack.push(part);
    if (parts.length > 0) this.#next = { blocks: 0, bytes: 0 };
  }

  #partsBelow(node: UnixfsNode, start: number): (Part | LaterParts)[] {
    const [first] = node.links;
    // Whoever gets the bytes of the node itself may release its block.
    if (first === undefined) return [];
    const { from, to, buffers } = this.#reading;
    const isRoot = node === this.#root;
    const below = start + (node.unixfs.data?.length ?? 0);
    const later = { of: detachedCid(node.cid), root: isRoot ? node : undefined, index: 0, start: below };
    const { bytes } = first.cid.multihash;
    // CIDs of parts are views of a block that is not large. The root may be read from again.
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
   * Adds to `next` what is requested of the parts that come next, until it is enough or nothing
   * more can be requested now.
   */
  #requestUpTo(reach: number, next: { blocks: number; bytes: number }): void {
    const requested = this.#requested;
    for (let at = this.#stack.length - 1; at >= 0 && !isEnough(next, reach); at -= 1) {
      const part = this.#stack[at] as Part | LaterParts;
      if (!("cid" in part)) return;
      // Sizes that are said may be wrong: the first few tell.
      if (requested.isUntried && requested.size >= READAHEAD.blocks) return;
      const below = this.#partsOfNext(part);
      if (below !== undefined) {
        this.#stack.splice(at, 1, ...below.toReversed());
        at += below.length;
        continue;
      }
      if (!requested.has(part) && !requested.ask(part, part.size, () => readPart(part, this.#reading))) return;
      next.blocks += 1;
      next.bytes += requested.bytesOf(part.size);
      if (requested.held(part) !== undefined) return;
    }
  }

  /**
   * The parts below one that has come before its turn and is nothing but a node above them;
   * undefined for any other.
   */
  #partsOfNext(part: Part): (Part | LaterParts)[] | undefined {
    const bytes = this.#requested.came(part);
    if (bytes === undefined || bytes.length >= part.size || part.cid.code === raw) return undefined;
    const node = unixfsNode(part.cid, bytes);
    const isInner = node?.unixfs.type === "File" && node.links.length > 0 && isSized(node);
    if (!isInner || (node.unixfs.data?.length ?? 0) > 0) return undefined;
    this.#requested.take(part);
    return this.#partsBelow(node, part.start);
  }
}
