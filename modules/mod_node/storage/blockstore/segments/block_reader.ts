/**
 * Reads blocks at known locations. Reads are coalesced and checked, and frequently read blocks stay
 * in memory for a moment.
 */

import type { CID } from "multiformats/cid";
import { dagPb } from "../../../formats/cid/codecs.ts";
import { matches } from "../../../formats/cid/hashes.ts";
import { NODE_LINKS_TAG } from "../../../formats/dag_pb/field_numbers.ts";
import { failure } from "../../../util/errors.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import { BufferPool } from "../buffer_pool.ts";
import type { Span } from "../store.ts";
import { CheckedBlocks } from "./checked_blocks.ts";
import { CheckedParts, partsAround } from "./checked_parts.ts";
import type { BytesLocation } from "./format.ts";
import { type ReadableSegments, ReadCoalescer } from "./read_coalescer.ts";
import { RecentBlocks } from "./recent_blocks.ts";

export interface BlockReaderOptions {
  /**
   * Whether to check every block. The first reads check it against its CID, later ones against a
   * checksum of bytes that were right.
   */
  readonly verifies: boolean;
  /** Converts the error of a read into an error that describes the state of the files. */
  readonly failed: (error: Error) => Error;
  /**
   * Called when the bytes at a location do not match the block. Resolves with whether reading again
   * may help.
   */
  readonly damaged?: (location: BytesLocation) => Promise<boolean>;
}

/**
 * Maximum bytes of a block that stays in memory for a moment: for nodes with links, and for other
 * blocks.
 */
const MAX_RECENT_NODE = 64 * 1024;
const MAX_RECENT_SMALL = 16 * 1024;

/** A part is read alone only if the block is at least this many times longer. */
const MIN_PARTS = 2;

export class BlockReader {
  readonly #reads: ReadCoalescer;
  /** Undefined when reads are not checked. */
  readonly #checked: CheckedBlocks | undefined;
  readonly #checkedParts = new CheckedParts();
  readonly #damaged: BlockReaderOptions["damaged"];
  /** Interior nodes. A client that reads a file in many ranges needs them for each range. */
  readonly #recentNodes = new RecentBlocks();
  /** Small blocks that were read several times. */
  readonly #recentSmall = new RecentBlocks();
  /** Buffers for checks. A check of all blocks uses only one at a time. */
  readonly #checking = new BufferPool();

  constructor(files: ReadableSegments, { verifies, failed, damaged }: BlockReaderOptions) {
    this.#reads = new ReadCoalescer(files, failed);
    this.#checked = verifies ? new CheckedBlocks() : undefined;
    this.#damaged = damaged;
  }

  /**
   * Reads the bytes of a block. `BlockStore.get` explains `buffers`.
   * @throws NodeError BLOCK_CORRUPT
   */
  async read(cid: CID, location: BytesLocation, buffers: BufferPool | undefined): Promise<Uint8Array> {
    if (location.bytes !== undefined) return unwrittenBytes(location.bytes, location);
    const isNode = buffers !== undefined && isInteriorSized(cid, location);
    const recent = buffers?.bypassesCache === true ? undefined : this.#recentOf(location, isNode);
    const known = recent?.get(cid, location);
    if (known !== undefined) return known;
    const isKnown = this.#checked?.has(location);
    const isSummed = this.#checked?.isSummed(location) === true;
    const bytes = await this.#reads.read(location, isNode ? undefined : buffers, isKnown);
    const checking = bytes.length === location.length && (this.#checked?.check(cid, location, bytes) ?? true);
    if (checking !== true && !(await checking)) return this.#readAgain(cid, location);
    if (isNode) {
      // A node that has links begins with them.
      if (bytes[0] === NODE_LINKS_TAG) recent?.add(cid, location, bytes);
    } else if (recent !== undefined && buffers === undefined && isSummed) {
      recent.add(cid, location, bytes);
    }
    return bytes;
  }

  #recentOf(location: BytesLocation, isNode: boolean): RecentBlocks | undefined {
    if (isNode) return this.#recentNodes;
    return isSmall(location) ? this.#recentSmall : undefined;
  }

  /**
   * Like `read`, but returns no promise for a block that is at hand: any small block, and a large
   * one that was read several times.
   */
  readSoon(cid: CID, location: BytesLocation, buffers: BufferPool | undefined): Uint8Array | Promise<Uint8Array> {
    if (location.bytes !== undefined) return this.read(cid, location, buffers);
    if (!isSmall(location)) return this.#readLargeHere(cid, location, buffers) ?? this.read(cid, location, buffers);
    // The pool is not used, because its small blocks share buffers, and a reader of single blocks
    // may release them late.
    return this.#recentSmall.get(cid, location) ?? this.#readHere(cid, location) ?? this.read(cid, location, undefined);
  }

  /**
   * Reads and checks a block synchronously. Returns undefined when that is impossible or the block
   * is damaged; `read` then reports the reason.
   */
  #readHere(cid: CID, location: BytesLocation): Uint8Array | undefined {
    const checked = this.#checked;
    if (checked === undefined) return undefined;
    const isSummed = checked.isSummed(location);
    const bytes = this.#reads.readHere(location, checked.has(location));
    if (bytes === undefined || checked.check(cid, location, bytes) !== true) return undefined;
    if (isSummed) this.#recentSmall.add(cid, location, bytes);
    return bytes;
  }

  /**
   * Like `#readHere`, for blocks that are checked by a checksum. Excludes nodes that other readers
   * may request again.
   */
  #readLargeHere(cid: CID, location: BytesLocation, buffers: BufferPool | undefined): Uint8Array | undefined {
    if (isInteriorSized(cid, location) || this.#checked?.isSummed(location) !== true) return undefined;
    const bytes = this.#reads.readHere(location, true, buffers);
    if (bytes === undefined || this.#checked.fits(cid, location, bytes)) return bytes;
    buffers?.release(bytes);
    return undefined;
  }

  /**
   * Reads a part of a block. For a large block that was read whole before, reads little more than
   * the part. See `BlockStore.getPart`.
   */
  async readPart(cid: CID, location: BytesLocation, span: Span, buffers: BufferPool | undefined): Promise<Uint8Array> {
    const { segment, offset, length } = location;
    const parts = partsAround(span, length);
    const isFew = parts.from < parts.to && parts.to - parts.from <= length / MIN_PARTS;
    const known = isFew && location.bytes === undefined ? this.#checkedParts : undefined;
    if (known?.has(location, parts)) {
      const range = { segment, offset: offset + parts.from, length: parts.to - parts.from };
      const bytes = await this.#reads.read(range, buffers, true);
      const fits = bytes.length === range.length && known.fit(cid, location, parts.from, bytes);
      if (fits) return bytes.subarray(span.from - parts.from, span.to - parts.from);
      buffers?.release(bytes);
    }
    const block = await this.read(cid, location, buffers);
    known?.add(cid, location, block);
    return block.subarray(span.from, span.to);
  }

  /** See `BlockStore.peek`. `locations` has the location of each block, or undefined. */
  peek(
    cids: readonly CID[],
    locations: readonly (BytesLocation | undefined)[],
    buffers: BufferPool,
  ): (Uint8Array | undefined)[] {
    return this.#readNow(cids, locations, buffers);
  }

  /**
   * Reads blocks that can be read and checked synchronously: by checksum, or by hash when they are
   * small.
   */
  #readNow(
    cids: readonly CID[],
    locations: readonly (BytesLocation | undefined)[],
    buffers: BufferPool,
  ): (Uint8Array | undefined)[] {
    const found = cids.map((): Uint8Array | undefined => undefined);
    const checked = this.#checked;
    if (checked === undefined) return found;
    const wanted = locations.map((at) => {
      if (at === undefined || at.bytes !== undefined) return undefined;
      if (checked.isSummed(at)) return { location: at, isKnown: true };
      return isSmall(at) ? { location: at, isKnown: checked.has(at) } : undefined;
    });
    this.#reads.readNow(wanted, buffers, (index, bytes) => {
      const location = locations[index] as BytesLocation;
      const fits = bytes.length === location.length && checked.check(cids[index] as CID, location, bytes);
      if (fits === true) found[index] = bytes;
      else if (fits === false) buffers.release(bytes);
    });
    return found;
  }

  /** Whether the bytes at a location match the CID. Bypasses the caches of this class. */
  async check(cid: CID, location: BytesLocation): Promise<boolean> {
    if (location.bytes !== undefined) return matches(cid, unwrittenBytes(location.bytes, location));
    const bytes = await this.#reads.read(location, this.#checking);
    const isWhole = bytes.length === location.length && (await matches(cid, bytes));
    this.#checking.release(bytes);
    return isWhole;
  }

  /**
   * Whether the file has these bytes at a location, regardless of earlier reads. For callers that
   * have the bytes and are about to rely on that copy: comparing costs a tenth of hashing.
   * @throws the errors of `read`
   */
  holds(location: BytesLocation, bytes: Uint8Array): boolean | Promise<boolean> {
    if (location.bytes !== undefined) return true;
    if (location.length !== bytes.length) return false;
    const here = this.#reads.readHere(location, false, this.#checking);
    if (here !== undefined && this.#isSame(here, bytes)) return true;
    return this.#holdsByNow(location, bytes);
  }

  async #holdsByNow(location: BytesLocation, bytes: Uint8Array): Promise<boolean> {
    const read = async () => this.#isSame(await this.#reads.read(location, this.#checking), bytes);
    return (await read()) || ((await this.#damaged?.(location)) === true && (await read()));
  }

  #isSame(read: Uint8Array, bytes: Uint8Array): boolean {
    const isSame = Buffer.compare(read, bytes) === 0;
    this.#checking.release(read);
    return isSame;
  }

  async #readAgain(cid: CID, location: BytesLocation): Promise<Uint8Array> {
    if ((await this.#damaged?.(location)) === true) {
      const bytes = await this.#reads.read(location, undefined);
      if (bytes.length === location.length && (await matches(cid, bytes))) return bytes;
    }
    throw failure("BLOCK_CORRUPT", { cid: cid.toString() });
  }
}

/**
 * Whether a block may be an interior node of a large file or directory and is small enough to stay
 * in memory.
 */
const isInteriorSized = (cid: CID, { length }: BytesLocation): boolean =>
  cid.code === dagPb && length <= MAX_RECENT_NODE;

const isSmall = ({ length }: BytesLocation): boolean => length <= MAX_RECENT_SMALL;

/** Returns data that is not in the file yet; a copy when the owner may overwrite the bytes. */
const unwrittenBytes = (bytes: Uint8Array, { release }: BytesLocation): Uint8Array =>
  release === undefined ? bytes : ownBytes(bytes);
