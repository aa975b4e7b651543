import type { CID } from "multiformats/cid";
import { identity } from "../../../formats/cid/hashes.ts";
import { settledWithin } from "../../../util/async/within.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import type { BufferPool } from "../../blockstore/buffer_pool.ts";
import { BlockReader } from "../../blockstore/segments/block_reader.ts";
import { type BytesLocation, cidOf, formOf, keyOf, MAX_MULTIHASH } from "../../blockstore/segments/format.ts";
import type { Block, BlockStore, PutOptions } from "../../blockstore/store.ts";
import { STORE_DEFAULTS } from "../defaults.ts";
import type { CondemnableBlocks } from "../gc/blocks.ts";
import type { SharedLog } from "../log.ts";
import type { SegmentCache } from "./cache.ts";
import { condemnableBlocks, Suspensions } from "./condemned.ts";
import type { PlaceFeed } from "./feed.ts";
import type { SegmentNumbers } from "./numbers.ts";
import type { SharedBlocksOptions } from "./options.ts";
import { pagesOf } from "./pages.ts";
import type { Places } from "./places.ts";
import { storedSegments } from "./stored_segments.ts";
import { Upkeep } from "./upkeep.ts";
import { SegmentWriter } from "./writer.ts";

const MIB = 2 ** 20;
const BUFFERED_BYTES = 4 * MIB;
/** Longer ones would have more chunks than the cache can name. */
const MAX_SEGMENT_BYTES = 1024 * MIB;
/** Milliseconds between two looks, for who waits for the decision on a block. */
const LOOK_MS = 1000;

/** See `openSharedBlocks`. */
export interface Parts {
  readonly places: Places;
  readonly numbers: SegmentNumbers;
  readonly cache: SegmentCache;
  readonly feed: PlaceFeed;
}

/**
 * The blocks of a store that several hosts share: in segments (CAR files) in an object store, which the log lists. Each host has the
 * index of all of them on its own disk.
 *
 * A block that was put is visible on this host at once, and on others after `sync`. Forms of one multihash are stored each by
 * itself, bytes included: so that each can be removed by itself without asking anybody.
 */
export class SharedBlocks implements BlockStore {
  /** Later reads of a block are checked by a sum. */
  readonly verifies = false;
  readonly #options: SharedBlocksOptions;
  readonly #places: Places;
  readonly #cache: SegmentCache;
  readonly #feed: PlaceFeed;
  readonly #log: SharedLog;
  readonly #writer: SegmentWriter;
  readonly #suspensions = new Suspensions();
  /** For collections across hosts. */
  readonly condemnable: CondemnableBlocks;
  readonly upkeep: Upkeep;
  /** The session in which this host has heard of everything before it, and the beginnings of the index that it has gone beyond. */
  #joined = { session: 0, resets: 0 };
  /** What this host has on its disk. */
  readonly #reads: BlockReader;
  /** What it may have to fetch: while the store is away, nobody else waits. */
  readonly #far: BlockReader;
  /** Past every cache. */
  readonly #direct: BlockReader;
  #closing: Promise<void> | undefined;
  readonly #counts = { hits: 0, misses: 0 };

  /** See `openSharedBlocks`. */
  constructor({ places, numbers, cache, feed }: Parts, options: SharedBlocksOptions) {
    const {
      folder,
      objects,
      log,
      segmentBytes = STORE_DEFAULTS.segmentBytes,
      bufferedBytes = BUFFERED_BYTES,
    } = options;
    this.#options = options;
    this.#places = places;
    this.#cache = cache;
    this.#feed = feed;
    this.#log = log;
    const sizes = { segmentBytes: Math.min(segmentBytes, MAX_SEGMENT_BYTES), bufferedBytes };
    const writer = new SegmentWriter({ folder, objects, log, cache, feed, numbers, ...sizes });
    this.#writer = writer;
    const [hear, catchUp] = [() => this.#hear(), () => this.#catchUp()];
    const { graceMs = STORE_DEFAULTS.graceMs, onNotice = () => {} } = options;
    const shared = { log, objects, places, numbers, feed, cache, writer, segmentBytes: sizes.segmentBytes };
    this.upkeep = new Upkeep({ ...shared, graceMs, onNotice, catchUp }, () => this.#mustBeOpen());
    const find = (cid: CID, buffers?: BufferPool) => this.#findAnyway(cid, buffers);
    const suspensions = this.#suspensions;
    const newId = () => writer.newId();
    this.condemnable = condemnableBlocks({ places, feed, objects, suspensions, hear, catchUp, newId, find });
    const failed = (error: Error) =>
      NodeError.is(error) ? error : failure("STORE_BROKEN", { path: folder, reason: error.message }, error);
    const damaged = async (location: BytesLocation) => cache.drop(location);
    this.#reads = new BlockReader(cache, { verifies: true, failed, damaged });
    this.#far = new BlockReader(cache, { verifies: true, failed, damaged });
    const direct = storedSegments(objects, (segment) => places.rows.get(segment));
    this.#direct = new BlockReader(direct, { verifies: true, failed });
  }

  async get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    while (!this.#isJoined) await this.#join();
    const place = this.#find(cid) ?? (await this.#decided(cid));
    return place && this.#read(cid, place, buffers);
  }

  async has(cid: CID): Promise<boolean> {
    while (!this.#isJoined) await this.#join();
    return (this.#find(cid) ?? (await this.#lookAgain(cid))) !== undefined;
  }

  async size(cid: CID): Promise<number | undefined> {
    return (this.#find(cid) ?? (await this.#lookAgain(cid)))?.length;
  }

  async forms({ multihash }: CID): Promise<readonly CID[]> {
    this.#mustBeOpen();
    const bytes = ownBytes(multihash.bytes);
    if (this.#formsOf(bytes).length === 0) await this.#hear();
    return this.#cidsOf(bytes);
  }

  async put(blocks: readonly Block[], { onNew }: PutOptions = {}): Promise<void> {
    this.#mustBeOpen();
    const writer = this.#writer;
    for (const block of blocks) {
      const { cid, release } = block;
      requireStorable(cid);
      // While it waits, another call may store it, or fill the segment.
      for (;;) {
        if (!this.#isJoined) await this.#join();
        else if (this.#find(cid) !== undefined || writer.isReadyFor(block)) break;
        else await writer.prepareFor(block);
      }
      if (this.#find(cid) !== undefined) release?.();
      else {
        writer.add(block);
        onNew?.(cid);
      }
    }
  }

  async sync(): Promise<void> {
    this.#mustBeOpen();
    await this.#writer.sync();
  }

  async delete(cids: readonly CID[]): Promise<boolean[]> {
    // What is removed is in the log.
    await this.sync();
    await this.#hear();
    const seen = new Set<string>();
    const told = cids.map((cid) => {
      if (seen.has(keyOf(cid.bytes)) || this.#find(cid) === undefined) return false;
      seen.add(keyOf(cid.bytes));
      return true;
    });
    const stored = cids.filter((_, at) => told[at]);
    if (stored.length > 0) {
      await this.#options.remove(stored);
      await this.#feed.settled();
    }
    return told;
  }

  async *keys(): AsyncGenerator<CID> {
    await this.#catchUp();
    // What moves to the index meanwhile comes first.
    const open = this.#writer.blocks.all().map(({ multihash }) => multihash);
    const seen = new Set(open.map(keyOf));
    const distinct = [...new Map(open.map((each) => [keyOf(each), each])).values()];
    yield* this.#whileOpen(distinct.flatMap((multihash) => this.#cidsOf(multihash)));
    for await (const page of pagesOf(this.#places, this.#feed, () => this.#catchUp())) {
      const others = page.filter(({ multihash }) => !seen.has(keyOf(multihash)));
      yield* this.#whileOpen(others.flatMap(({ multihash }) => this.#cidsOf(multihash)));
    }
  }

  keysToRead(): AsyncIterable<CID> {
    return this.upkeep.keysToRead();
  }

  knows(cid: CID): boolean {
    return this.#find(cid) !== undefined;
  }

  async stat(): Promise<{ readonly blocks: number; readonly bytes: number }> {
    await this.#catchUp();
    let { bytes } = this.#writer;
    for (const row of this.#places.rows.values()) bytes += row.bytes;
    const { places, condemned } = this.#places.state;
    const news = this.#writer.blocks.all().filter(({ multihash, form }) => this.#place(multihash, form) === undefined);
    const hidden = this.#suspensions.isEmpty ? 0 : condemned;
    return { blocks: places - hidden + news.length, bytes };
  }

  async compact(signal?: AbortSignal): Promise<void> {
    await this.upkeep.merge(signal);
  }

  async check(cid: CID): Promise<boolean | undefined> {
    const place = this.#find(cid) ?? (await this.#lookAgain(cid));
    if (place === undefined) return undefined;
    const reads = this.#writer.isUnfound(place.segment) ? this.#reads : this.#direct;
    return reads.check(cid, place);
  }

  /** Blocks that were put without `sync` are stored as well; rejects when they cannot be. The log is closed by its owner. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** The disk cache, and how many blocks were read from it and past it. */
  get cached(): { readonly bytes: number; readonly max: number; readonly hits: number; readonly misses: number } {
    return { bytes: this.#cache.bytes, max: this.#cache.max, ...this.#counts };
  }

  /** Bytes of segments that are not in the store, or not found there yet. */
  get waiting(): number {
    return this.#writer.bytes;
  }

  /** @internal Blocks of these segments of this host are found by the feed. */
  found(segments: readonly number[]): void {
    this.#writer.found(segments);
    if (this.#closing === undefined) this.upkeep.written(segments.length);
  }

  /** @internal These collections are decided. */
  decided(epochs: readonly number[]): void {
    this.#suspensions.decided(epochs);
  }

  async #close(): Promise<void> {
    this.#suspensions.close();
    await this.upkeep.ended();
    try {
      await this.#writer.sync();
    } finally {
      await this.#feed.close();
      await this.#cache.close();
      await this.#places.close();
    }
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw failure("STORE_CLOSED");
  }

  /** Where a stored form is, as far as this host knows. */
  #find(cid: CID): BytesLocation | undefined {
    this.#mustBeOpen();
    const { bytes } = cid.multihash;
    const form = formOf(cid);
    if (!this.#writer.blocks.isEmpty) {
      const open = this.#writer.blocks.find(bytes).find((block) => block.form === form);
      if (open !== undefined) return open.location;
    }
    return this.#place(bytes, form);
  }

  #place(multihash: Uint8Array, form: number): BytesLocation | undefined {
    const place = this.#feed.find(multihash).find((each) => each.form === form);
    return place === undefined || this.#suspensions.hides(multihash, place) ? undefined : place;
  }

  /** For what is not here as far as this host knows: another one may have stored it. @throws NodeError STORE_UNAVAILABLE */
  async #lookAgain(cid: CID): Promise<BytesLocation | undefined> {
    await this.#hear();
    return this.#find(cid);
  }

  /**
   * Collections did not ask this host before its session began: until it has what they removed, it may take for stored what is gone.
   * So it may while the index is made anew, which is told what was written before it is told what of that was removed.
   * Without a session nothing comes of what it takes for stored.
   */
  get #isJoined(): boolean {
    const { session } = this.#log;
    return session === 0 || (session === this.#joined.session && this.#feed.resets === this.#joined.resets);
  }

  async #join(): Promise<void> {
    const { session } = this.#log;
    const { resets } = this.#feed;
    await this.#hear();
    this.#joined = { session, resets };
  }

  /** Everything that was committed anywhere is found, until something is awaited. */
  async #hear(): Promise<void> {
    for (let resets = -1; resets !== this.#feed.resets; ) {
      this.#mustBeOpen();
      ({ resets } = this.#feed);
      await this.#log.refresh();
      if (!this.#feed.isSettled) await this.#feed.settled();
    }
    this.#mustBeOpen();
  }

  /** It is in the index as well: for who goes through that. A host that is new to the store takes a while. */
  async #catchUp(): Promise<void> {
    do {
      await this.#hear();
      await this.#feed.indexed();
    } while (this.#feed.isAhead);
    this.#mustBeOpen();
  }

  #formsOf(multihash: Uint8Array): number[] {
    const open = this.#writer.blocks.find(multihash).map(({ form }) => form);
    const stored = this.#feed.find(multihash).filter((place) => !this.#suspensions.hides(multihash, place));
    return [...new Set([...open, ...stored.map(({ form }) => form)])];
  }

  #cidsOf(multihash: Uint8Array): CID[] {
    return this.#formsOf(multihash).map((form) => cidOf(form, multihash));
  }

  *#whileOpen(cids: readonly CID[]): Generator<CID> {
    for (const cid of cids) {
      yield cid;
      this.#mustBeOpen();
    }
  }

  async #read(cid: CID, place: BytesLocation, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    const isHere = this.#cache.has(place);
    this.#counts[isHere ? "hits" : "misses"] += 1;
    const reads = isHere ? this.#reads : this.#far;
    return reads.read(cid, place, buffers).catch(async (error: unknown) => {
      if (!isGone(error)) throw error;
      // It was merged into another segment, and this host had not heard of it.
      const moved = await this.#lookAgain(cid);
      return moved && this.#far.read(cid, moved, buffers);
    });
  }

  /**
   * Where a block is that does not seem to be stored; once it is known whether it goes, if that is the question.
   *
   * @throws NodeError STORE_UNAVAILABLE
   */
  async #decided(cid: CID): Promise<BytesLocation | undefined> {
    for (;;) {
      const { change } = this.#suspensions;
      const found = await this.#lookAgain(cid);
      if (found !== undefined || this.#hidden(cid) === undefined) return found;
      // Then it is asked for again: while the store is away nothing is decided, and this fails.
      await settledWithin(LOOK_MS, change);
    }
  }

  /** Where a block is that may go. */
  #hidden(cid: CID): BytesLocation | undefined {
    const { bytes } = cid.multihash;
    const place = this.#feed.find(bytes).find(({ form }) => form === formOf(cid));
    return place !== undefined && this.#suspensions.hides(bytes, place) ? place : undefined;
  }

  async #findAnyway(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    const place = this.#find(cid) ?? (await this.#lookAgain(cid)) ?? this.#hidden(cid);
    return place && this.#read(cid, place, buffers);
  }
}

function requireStorable(cid: CID): void {
  const { code, bytes } = cid.multihash;
  if (code !== identity.code && bytes.length <= MAX_MULTIHASH) return;
  throw new NodeError(`${cid} cannot be stored: its multihash is the block itself, or too long to be a key`);
}

const isGone = (error: unknown): boolean => NodeError.is(error) && error.code === "SEGMENT_GONE";
