import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import { identity } from "../../../formats/cid/hashes.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import type { BufferPool } from "../../blockstore/buffer_pool.ts";
import { BlockReader } from "../../blockstore/segments/block_reader.ts";
import { diskFs, withRoom } from "../../blockstore/segments/files.ts";
import { type BytesLocation, cidOf, formOf, keyOf, MAX_MULTIHASH } from "../../blockstore/segments/format.ts";
import type { Block, BlockStore, PutOptions } from "../../blockstore/store.ts";
import type { MakeRoom } from "../../disk_reserve.ts";
import type { Notice } from "../../lmdb/open.ts";
import type { SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { readBlockList } from "./block_lists.ts";
import { SegmentCache } from "./cache.ts";
import { PlaceFeed } from "./feed.ts";
import { loadIndex } from "./load_index.ts";
import { SegmentNumbers } from "./numbers.ts";
import { OpenBlocks, OpenSegment } from "./open_segment.ts";
import { Places } from "./places.ts";
import { Sealer } from "./sealer.ts";
import { storedSegments } from "./stored_segments.ts";

export interface SharedBlocksOptions {
  /** For the index, the disk cache and what is not in the store yet; nothing in it is missed when it is lost. */
  readonly folder: string;
  readonly objects: ObjectStore;
  /** Of which nothing has been read yet. */
  readonly log: SharedLog;
  /** Removes forms that are stored, on all hosts; see `BlockStore.delete`. */
  readonly remove: (cids: readonly CID[]) => Promise<void>;
  /** Length of a segment in bytes; 64 MiB. */
  readonly segmentBytes?: number | undefined;
  /** Bytes of the disk cache; 10 GiB. */
  readonly cacheBytes?: number | undefined;
  /** Bytes that are put but not written to the disk yet and may be held in memory; 4 MiB. */
  readonly bufferedBytes?: number | undefined;
  /** Called with a sentence about each thing that was repaired, or should be. */
  readonly onNotice?: Notice | undefined;
  /** Called when the disk has no room for a write, which is then tried again. */
  readonly makeRoom?: MakeRoom | undefined;
}

const MIB = 2 ** 20;
const SEGMENT_BYTES = 64 * MIB;
const CACHE_BYTES = 10 * 1024 * MIB;
const BUFFERED_BYTES = 4 * MIB;
/** Longer ones would have more chunks than the cache can name. */
const MAX_SEGMENT_BYTES = 1024 * MIB;
const PAGE = 512;

/** @throws NodeError STORE_FULL when the folder cannot be written to, STORE_BROKEN when it cannot be read */
export async function openSharedBlocks(options: SharedBlocksOptions): Promise<SharedBlocks> {
  const { folder, objects, log, onNotice = () => {}, makeRoom } = options;
  let places: Places | undefined;
  try {
    places = await Places.open(join(folder, "index"), onNotice, makeRoom);
    const { rows } = places;
    const numbers = new SegmentNumbers(rows);
    const cache = await SegmentCache.open({
      folder,
      objects,
      find: (segment) => rows.get(segment),
      numberOf: (id) => numbers.find(id),
      maxBytes: options.cacheBytes ?? CACHE_BYTES,
      fs: withRoom(diskFs, makeRoom),
    });
    let store: SharedBlocks | undefined;
    const feed = new PlaceFeed({
      places,
      numbers,
      load: (segment) => loadIndex(objects, segment, onNotice),
      readList: (list) => readBlockList(objects, list),
      onIndexed: (segments) => store?.indexed(segments),
      onDropped: (segments) => {
        for (const segment of segments) cache.forget(segment);
      },
    });
    log.follow(feed);
    store = new SharedBlocks({ places, numbers, cache, feed }, options);
    return store;
  } catch (error) {
    await places?.close().catch(() => {});
    if (NodeError.is(error)) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const isFull = ["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"].includes(code ?? "");
    throw failure(isFull ? "STORE_FULL" : "STORE_BROKEN", { path: folder, reason: message }, error);
  }
}

interface Parts {
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
  readonly #segmentBytes: number;
  readonly #places: Places;
  readonly #numbers: SegmentNumbers;
  readonly #cache: SegmentCache;
  readonly #feed: PlaceFeed;
  readonly #log: SharedLog;
  readonly #sealer: Sealer;
  readonly #reads: BlockReader;
  /** Past every cache. */
  readonly #direct: BlockReader;
  /** What the index does not have yet. */
  readonly #openBlocks = new OpenBlocks();
  readonly #unindexed = new Map<number, OpenSegment>();
  /** The segment that blocks are added to. */
  #open: OpenSegment | undefined;
  #beginning: Promise<void> | undefined;
  #syncing: Promise<void> = Promise.resolve();
  #nextSync: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** See `openSharedBlocks`. */
  constructor({ places, numbers, cache, feed }: Parts, options: SharedBlocksOptions) {
    const { folder, objects, log, segmentBytes = SEGMENT_BYTES } = options;
    this.#options = options;
    this.#segmentBytes = Math.min(segmentBytes, MAX_SEGMENT_BYTES);
    this.#places = places;
    this.#numbers = numbers;
    this.#cache = cache;
    this.#feed = feed;
    this.#log = log;
    this.#sealer = new Sealer({ objects, log, feed, files: cache.own });
    const failed = (error: Error) =>
      NodeError.is(error) ? error : failure("STORE_BROKEN", { path: folder, reason: error.message }, error);
    const damaged = async (location: BytesLocation) => cache.drop(location);
    this.#reads = new BlockReader(cache, { verifies: true, failed, damaged });
    const direct = storedSegments(objects, (segment) => places.rows.get(segment));
    this.#direct = new BlockReader(direct, { verifies: true, failed });
  }

  async get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    const place = this.#find(cid) ?? (await this.#lookAgain(cid));
    if (place === undefined) return undefined;
    return this.#reads.read(cid, place, buffers).catch(async (error: unknown) => {
      if (!isGone(error)) throw error;
      // It was merged into another segment, and this host had not heard of it.
      const moved = await this.#lookAgain(cid);
      if (moved?.segment === place.segment) throw error;
      return moved && this.#reads.read(cid, moved, buffers);
    });
  }

  async has(cid: CID): Promise<boolean> {
    return (this.#find(cid) ?? (await this.#lookAgain(cid))) !== undefined;
  }

  async size(cid: CID): Promise<number | undefined> {
    return (this.#find(cid) ?? (await this.#lookAgain(cid)))?.length;
  }

  async forms({ multihash }: CID): Promise<readonly CID[]> {
    this.#mustBeOpen();
    const bytes = multihash.bytes.slice();
    if (this.#formsOf(bytes).length === 0) await this.#catchUp();
    return this.#formsOf(bytes).map((form) => cidOf(form, bytes));
  }

  async put(blocks: readonly Block[], { onNew }: PutOptions = {}): Promise<void> {
    this.#mustBeOpen();
    for (const block of blocks) {
      const { cid, release } = block;
      requireStorable(cid);
      // While it waits, another call may store it, or fill the segment.
      while (this.#find(cid) === undefined && !this.#isReadyFor(block)) await this.#prepareFor(block);
      this.#mustBeOpen();
      if (this.#find(cid) !== undefined) {
        release?.();
        continue;
      }
      const open = this.#open as OpenSegment;
      this.#openBlocks.add(open.add(block));
      onNew?.(cid);
    }
  }

  /** Calls that come while one is under way share the next. */
  async sync(): Promise<void> {
    this.#mustBeOpen();
    await this.#sync();
  }

  async delete(cids: readonly CID[]): Promise<boolean[]> {
    // What is removed is in the log.
    await this.sync();
    await this.#catchUp();
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
    const open = this.#openBlocks.all().map(({ multihash }) => multihash);
    const seen = new Set(open.map(keyOf));
    for (const multihash of new Map(open.map((each) => [keyOf(each), each])).values()) yield* this.#cidsOf(multihash);
    for (let after: Uint8Array | undefined; ; ) {
      await nextTurn();
      this.#mustBeOpen();
      const page = this.#places.page(after, PAGE);
      for (const { multihash } of page) if (!seen.has(keyOf(multihash))) yield* this.#cidsOf(multihash);
      after = page.at(-1)?.multihash;
      if (after === undefined) return;
    }
  }

  async stat(): Promise<{ readonly blocks: number; readonly bytes: number }> {
    await this.#catchUp();
    let bytes = 0;
    for (const row of this.#places.rows.values()) bytes += row.bytes;
    for (const open of this.#unindexed.values()) bytes += open.bytes;
    const { places, condemned } = this.#places.state;
    const news = this.#openBlocks.all().filter(({ multihash, form }) => this.#place(multihash, form) === undefined);
    return { blocks: places - condemned + news.length, bytes };
  }

  async compact(signal?: AbortSignal): Promise<void> {
    this.#mustBeOpen();
    signal?.throwIfAborted();
  }

  async check(cid: CID): Promise<boolean | undefined> {
    const place = this.#find(cid) ?? (await this.#lookAgain(cid));
    if (place === undefined) return undefined;
    const reads = this.#unindexed.has(place.segment) ? this.#reads : this.#direct;
    return reads.check(cid, place);
  }

  /** Blocks that were put without `sync` are stored as well; rejects when they cannot be. The log is closed by its owner. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** @internal These segments of this host are in the index. */
  indexed(segments: readonly number[]): void {
    for (const number of segments) {
      const open = this.#unindexed.get(number);
      if (open === undefined) continue;
      this.#unindexed.delete(number);
      this.#openBlocks.remove(open);
      this.#cache.stored(number, open.bytes);
    }
  }

  async #close(): Promise<void> {
    try {
      await this.#sync();
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
    if (!this.#openBlocks.isEmpty) {
      const open = this.#openBlocks.find(bytes).find((block) => block.form === form);
      if (open !== undefined) return open.location;
    }
    return this.#place(bytes, form);
  }

  #place(multihash: Uint8Array, form: number): BytesLocation | undefined {
    return this.#places.find(multihash).find((place) => place.form === form && place.epoch === 0);
  }

  /** For what is not here as far as this host knows: another one may have stored it. @throws NodeError STORE_UNAVAILABLE */
  async #lookAgain(cid: CID): Promise<BytesLocation | undefined> {
    await this.#catchUp();
    return this.#find(cid);
  }

  /** Everything that was committed anywhere is in the index. */
  async #catchUp(): Promise<void> {
    this.#mustBeOpen();
    await this.#log.refresh();
    if (!this.#feed.isSettled) await this.#feed.settled();
    this.#mustBeOpen();
  }

  #formsOf(multihash: Uint8Array): number[] {
    const open = this.#openBlocks.find(multihash).map(({ form }) => form);
    const stored = this.#places.find(multihash).flatMap(({ form, epoch }) => (epoch === 0 ? [form] : []));
    return [...new Set([...open, ...stored])];
  }

  *#cidsOf(multihash: Uint8Array): Generator<CID> {
    for (const form of this.#formsOf(multihash)) {
      yield cidOf(form, multihash);
      this.#mustBeOpen();
    }
  }

  #isReadyFor(block: Block): boolean {
    return this.#open?.fits(block, this.#segmentBytes) === true && this.#open.hasRoom;
  }

  /** One step on the way to a segment that takes the block. */
  async #prepareFor(block: Block): Promise<void> {
    const open = this.#open;
    if (open === undefined) {
      this.#beginning ??= this.#begin().finally(() => {
        this.#beginning = undefined;
      });
      return this.#beginning;
    }
    if (open.fits(block, this.#segmentBytes)) return open.room();
    if (!this.#sealer.hasRoom) return this.#sealer.room();
    this.#seal(open);
  }

  async #begin(): Promise<void> {
    const number = this.#numbers.take();
    this.#cache.begin(number);
    try {
      const { bufferedBytes = BUFFERED_BYTES } = this.#options;
      const open = await OpenSegment.begin(this.#cache.own, number, bufferedBytes);
      this.#unindexed.set(number, open);
      this.#open = open;
    } catch (error) {
      throw failure("STORE_FULL", { path: this.#options.folder, reason: (error as Error).message }, error);
    }
  }

  #seal(open: OpenSegment): void {
    this.#open = undefined;
    this.#sealer.add(open);
  }

  #sync(): Promise<void> {
    this.#nextSync ??= this.#syncing
      .catch(() => {})
      .then(() => {
        this.#nextSync = undefined;
        const open = this.#open;
        if (open !== undefined && open.blocks.length > 0) this.#seal(open);
        this.#syncing = this.#sealer.all();
        return this.#syncing;
      });
    return this.#nextSync;
  }
}

function requireStorable(cid: CID): void {
  const { code, bytes } = cid.multihash;
  if (code !== identity.code && bytes.length <= MAX_MULTIHASH) return;
  throw new NodeError(`${cid} cannot be stored: its multihash is the block itself, or too long to be a key`);
}

const isGone = (error: unknown): boolean => NodeError.is(error) && error.code === "SEGMENT_GONE";
