/** Reads blocks whose places are known: coalesced, checked, and those that many ask for kept for a moment. */

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
  /** Check every block: against its CID, and when it is read again by a sum of the bytes that were found to be right. */
  readonly verifies: boolean;
  /** Makes what a read rejects with of what the files say. */
  readonly failed: (error: Error) => Error;
  /** The bytes that were read at a location are not those of the block; true where it is worth reading them again. */
  readonly damaged?: (location: BytesLocation) => Promise<boolean>;
}

/** Bytes of a block that is kept for a moment: of a node that has links, and of any other. */
const MAX_RECENT_NODE = 64 * 1024;
const MAX_RECENT_SMALL = 16 * 1024;

/** Less than a block by so much, parts are read alone. */
const MIN_PARTS = 2;

export class BlockReader {
  readonly #reads: ReadCoalescer;
  /** Undefined where reads are not checked. */
  readonly #checked: CheckedBlocks | undefined;
  readonly #checkedParts = new CheckedParts();
  readonly #damaged: BlockReaderOptions["damaged"];
  /** Whoever reads a file in many ranges needs its interior nodes each time. */
  readonly #recentNodes = new RecentBlocks();
  /** Small blocks that were read several times. */
  readonly #recentSmall = new RecentBlocks();
  /** Whoever checks blocks checks all of them. */
  readonly #checking = new BufferPool();

  constructor(files: ReadableSegments, { verifies, failed, damaged }: BlockReaderOptions) {
    this.#reads = new ReadCoalescer(files, failed);
    this.#checked = verifies ? new CheckedBlocks() : undefined;
    this.#damaged = damaged;
  }

  /** The bytes of a block. For `buffers` see `BlockStore.get`. @throws NodeError BLOCK_CORRUPT */
  async read(cid: CID, location: BytesLocation, buffers: BufferPool | undefined): Promise<Uint8Array> {
    if (location.bytes !== undefined) return unwrittenBytes(location.bytes, location);
    const isNode = buffers !== undefined && isInteriorSized(cid, location);
    const recent = buffers?.readsAnew === true ? undefined : this.#recentOf(location, isNode);
    const known = recent?.get(cid, location);
    if (known !== undefined) return known;
    const isKnown = this.#checked?.has(location);
    const isSummed = this.#checked?.isSummed(location) === true;
    const bytes = await this.#reads.read(location, isNode ? undefined : buffers, isKnown);
    const checking = bytes.length === location.length && (this.#checked?.check(cid, location, bytes) ?? true);
    if (checking !== true && !(await checking)) return this.#readAgain(cid, location);
    if (isNode) {
      // Links stand first in a node that has any.
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

  /** As `read`, without a promise for a block that is at hand: any small one, and a large one that was read several times. */
  readSoon(cid: CID, location: BytesLocation, buffers: BufferPool | undefined): Uint8Array | Promise<Uint8Array> {
    if (location.bytes !== undefined) return this.read(cid, location, buffers);
    if (!isSmall(location)) return this.#readLargeHere(cid, location, buffers) ?? this.read(cid, location, buffers);
    // Without the pool, whose small blocks share buffers: who reads one by one may be slow to let go of it.
    return this.#recentSmall.get(cid, location) ?? this.#readHere(cid, location) ?? this.read(cid, location, undefined);
  }

  /** What can be read and checked now; undefined also for what is damaged, of which `read` tells. */
  #readHere(cid: CID, location: BytesLocation): Uint8Array | undefined {
    const checked = this.#checked;
    if (checked === undefined) return undefined;
    const isSummed = checked.isSummed(location);
    const bytes = this.#reads.readHere(location, checked.has(location));
    if (bytes === undefined || checked.check(cid, location, bytes) !== true) return undefined;
    if (isSummed) this.#recentSmall.add(cid, location, bytes);
    return bytes;
  }

  /** As `#readHere`, of what is checked by a sum, and of no node that others may want again. */
  #readLargeHere(cid: CID, location: BytesLocation, buffers: BufferPool | undefined): Uint8Array | undefined {
    if (isInteriorSized(cid, location) || this.#checked?.isSummed(location) !== true) return undefined;
    const bytes = this.#reads.readHere(location, true, buffers);
    if (bytes === undefined || this.#checked.fits(cid, location, bytes)) return bytes;
    buffers?.release(bytes);
    return undefined;
  }

  /** Bytes of a block: of a large one that was read whole before, not much more than these are read. See `BlockStore.getPart`. */
  async readPart(cid: CID, location: BytesLocation, span: Span, buffers: BufferPool | undefined): Promise<Uint8Array> {
    const { segment, offset, length } = location;
    const parts = partsAround(span, length);
    const isFew = parts.from < parts.to && parts.to - parts.from <= length / MIN_PARTS;
    const known = isFew && location.bytes === undefined ? this.#checkedParts : undefined;
    if (known?.has(location, parts)) {
      const place = { segment, offset: offset + parts.from, length: parts.to - parts.from };
      const bytes = await this.#reads.read(place, buffers, true);
      const fits = bytes.length === place.length && known.fit(cid, location, parts.from, bytes);
      if (fits) return bytes.subarray(span.from - parts.from, span.to - parts.from);
      buffers?.release(bytes);
    }
    const block = await this.read(cid, location, buffers);
    known?.add(cid, location, block);
    return block.subarray(span.from, span.to);
  }

  /** See `BlockStore.peek`. Of each block its location, where it has one. */
  peek(
    cids: readonly CID[],
    locations: readonly (BytesLocation | undefined)[],
    buffers: BufferPool,
  ): (Uint8Array | undefined)[] {
    return this.#readNow(cids, locations, buffers);
  }

  /** Those that can be read and checked now: by a sum, or where they are small by their hash. */
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

  /** Whether the bytes at a location are those of the CID; no cache of this class is asked. */
  async check(cid: CID, location: BytesLocation): Promise<boolean> {
    if (location.bytes !== undefined) return matches(cid, unwrittenBytes(location.bytes, location));
    const bytes = await this.#reads.read(location, this.#checking);
    const isWhole = bytes.length === location.length && (await matches(cid, bytes));
    this.#checking.release(bytes);
    return isWhole;
  }

  async #readAgain(cid: CID, location: BytesLocation): Promise<Uint8Array> {
    if ((await this.#damaged?.(location)) === true) {
      const bytes = await this.#reads.read(location, undefined);
      if (bytes.length === location.length && (await matches(cid, bytes))) return bytes;
    }
    throw failure("BLOCK_CORRUPT", { cid: cid.toString() });
  }
}

/** Whether it may be a node of a large file or directory, and not most of the memory for such. */
const isInteriorSized = (cid: CID, { length }: BytesLocation): boolean =>
  cid.code === dagPb && length <= MAX_RECENT_NODE;

const isSmall = ({ length }: BytesLocation): boolean => length <= MAX_RECENT_SMALL;

/** Data that is not in the file yet; a copy when the owner reuses the bytes. */
const unwrittenBytes = (bytes: Uint8Array, { release }: BytesLocation): Uint8Array =>
  release === undefined ? bytes : ownBytes(bytes);
