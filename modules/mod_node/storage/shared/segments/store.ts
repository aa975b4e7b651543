import type { CID } from "multiformats/cid";
import { identity } from "../../../formats/cid/hashes.ts";
import { settledWithin } from "../../../util/async/within.ts";
import { failure, NodeError } from "../../../util/errors.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import type { BufferPool } from "../../blockstore/buffer_pool.ts";
import { BlockReader, type BlockReaderOptions } from "../../blockstore/segments/block_reader.ts";
import { type BytesLocation, cidOf, formOf, keyOf } from "../../blockstore/segments/format.ts";
import type { Block, BlockStore, PutOptions } from "../../blockstore/store.ts";
import { STORE_DEFAULTS } from "../defaults.ts";
import type { CondemnableBlocks } from "../gc/blocks.ts";
import type { SharedLog } from "../log.ts";
import type { BlockIndex } from "./block_index.ts";
import type { SegmentCache } from "./cache.ts";
import { condemnableBlocks, Suspensions } from "./condemned.ts";
import type { IndexFeed } from "./index_feed.ts";
import { BlockIntake } from "./intake.ts";
import { ListedCopies } from "./listed_copies.ts";
import { carKey } from "./names.ts";
import type { SegmentNumbers } from "./numbers.ts";
import type { SharedBlocksOptions } from "./options.ts";
import { pagesOf } from "./pages.ts";
import { inStretches, isGone, isLost, storedSegments } from "./stored_segments.ts";
import { Upkeep } from "./upkeep.ts";
import { SegmentWriter } from "./writer.ts";

const MIB = 2 ** 20;
const BUFFERED_BYTES = 4 * MIB;
/** Longer segments would have more chunks than the cache has keys for. */
const MAX_SEGMENT_BYTES = 1024 * MIB;
/** Milliseconds between checks while a caller waits for the decision on a block. */
const CHECK_MS = 1000;

/** The parts of the store; see `openSharedBlocks`. */
export interface Parts {
  readonly index: BlockIndex;
  readonly numbers: SegmentNumbers;
  readonly cache: SegmentCache;
  readonly feed: IndexFeed;
}

/**
 * The blocks of a store that several hosts share. They are in segments (CAR files) in an object
 * store, which the log lists. Each host has an index of all blocks on its own disk.
 *
 * A block is visible on this host right after `put`, and on other hosts after `sync`. Each form of
 * a multihash is stored separately with its bytes, so that it can be removed without regard to
 * other forms.
 */
export class SharedBlocks implements BlockStore {
  /** Later reads verify blocks by a checksum. */
  readonly verifies = false;
  readonly #options: SharedBlocksOptions;
  readonly #index: BlockIndex;
  readonly #cache: SegmentCache;
  readonly #feed: IndexFeed;
  readonly #log: SharedLog;
  readonly #writer: SegmentWriter;
  readonly #suspensions = new Suspensions();
  /** The interface for collections across hosts. */
  readonly condemnable: CondemnableBlocks;
  readonly upkeep: Upkeep;
  /**
   * The session in which this host has applied everything before it, and the number of resets of
   * the index at that time.
   */
  #joined = { session: 0, resets: 0 };
  /** Reads blocks that are on the disk of this host. */
  readonly #reads: BlockReader;
  /**
   * Reads blocks that may have to be fetched. It is separate, so that local reads do not wait while
   * the store is unreachable.
   */
  readonly #remoteReads: BlockReader;
  readonly #checks: BlockReaderOptions;
  readonly #copies: ListedCopies;
  readonly #intake: BlockIntake;
  #closing: Promise<void> | undefined;
  readonly #counts = { hits: 0, misses: 0 };

  /** See `openSharedBlocks`. */
  constructor({ index, numbers, cache, feed }: Parts, options: SharedBlocksOptions) {
    const {
      folder,
      objects,
      log,
      segmentBytes = STORE_DEFAULTS.segmentBytes,
      bufferedBytes = BUFFERED_BYTES,
    } = options;
    this.#options = options;
    this.#index = index;
    this.#cache = cache;
    this.#feed = feed;
    this.#log = log;
    const sizes = { segmentBytes: Math.min(segmentBytes, MAX_SEGMENT_BYTES), bufferedBytes };
    const writer = new SegmentWriter({ folder, objects, log, cache, feed, numbers, ...sizes });
    this.#writer = writer;
    const readLog = () => this.#readLog();
    const catchUp = () => this.#catchUp();
    const { graceMs = STORE_DEFAULTS.graceMs, onNotice = () => {} } = options;
    const shared = { log, objects, index, numbers, feed, cache, writer, segmentBytes: sizes.segmentBytes };
    this.upkeep = new Upkeep({ ...shared, graceMs, onNotice, catchUp }, () => this.#mustBeOpen());
    const find = (cid: CID, buffers?: BufferPool) => this.#findAnyway(cid, buffers);
    const suspensions = this.#suspensions;
    const newId = () => writer.newId();
    this.condemnable = condemnableBlocks({ index, feed, objects, suspensions, readLog, catchUp, newId, find });
    const failed = (error: Error) =>
      NodeError.is(error) ? error : failure("STORE_BROKEN", { path: folder, reason: error.message }, error);
    const damaged = async (location: BytesLocation) => cache.drop(location);
    this.#reads = new BlockReader(cache, { verifies: true, failed, damaged });
    this.#remoteReads = new BlockReader(cache, { verifies: true, failed, damaged });
    this.#checks = { verifies: true, failed };
    const holds = (location: BytesLocation, bytes: Uint8Array) =>
      (cache.has(location) ? this.#reads : this.#remoteReads).holds(location, bytes);
    const copies = new ListedCopies({ objects, find: (segment) => index.rows.get(segment), holds, onNotice });
    this.#copies = copies;
    const listed = { find: (cid: CID) => this.#find(cid), isJoined: () => this.#isJoined };
    this.#intake = new BlockIntake({ writer, copies, ...listed, join: () => this.#join(), readLog });
  }

  async get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    while (!this.#isJoined) await this.#join();
    const location = this.#find(cid) ?? (await this.#decided(cid));
    return location && this.#read(cid, location, buffers);
  }

  async has(cid: CID): Promise<boolean> {
    while (!this.#isJoined) await this.#join();
    return (this.#find(cid) ?? (await this.#findAfterRefresh(cid))) !== undefined;
  }

  async size(cid: CID): Promise<number | undefined> {
    return (this.#find(cid) ?? (await this.#findAfterRefresh(cid)))?.length;
  }

  async forms(cid: CID): Promise<readonly CID[]> {
    this.#mustBeOpen();
    const bytes = ownBytes(cid.multihash.bytes);
    for (;;) {
      const { change } = this.#suspensions;
      if (this.#formsOf(bytes).length === 0) await this.#readLog();
      const found = this.#cidsOf(bytes);
      // A block that a root retains is never reported missing, as in `get`.
      const isInDoubt = found.length === 0 && this.#hidden(cid) === undefined && this.#feed.find(bytes).length > 0;
      if (!isInDoubt) return found;
      await settledWithin(CHECK_MS, change);
    }
  }

  async put(blocks: readonly Block[], options: PutOptions = {}): Promise<void> {
    this.#mustBeOpen();
    await this.#intake.put(blocks, options);
  }

  async sync(): Promise<void> {
    this.#mustBeOpen();
    await this.#writer.sync();
  }

  async delete(cids: readonly CID[]): Promise<boolean[]> {
    // Only blocks in the log can be removed.
    await this.sync();
    await this.#readLog();
    const seen = new Set<string>();
    const isStored = cids.map((cid) => {
      if (seen.has(keyOf(cid.bytes)) || this.#find(cid) === undefined) return false;
      seen.add(keyOf(cid.bytes));
      return true;
    });
    const stored = cids.filter((_, at) => isStored[at]);
    if (stored.length > 0) {
      await this.#options.remove(stored);
      await this.#feed.settled();
    }
    return isStored;
  }

  async *keys(): AsyncGenerator<CID> {
    await this.#catchUp();
    // Open blocks come first, because they may move to the index in the meantime.
    const open = this.#writer.blocks.all().map(({ multihash }) => multihash);
    const seen = new Set(open.map(keyOf));
    const distinct = [...new Map(open.map((each) => [keyOf(each), each])).values()];
    yield* this.#whileOpen(distinct.flatMap((multihash) => this.#cidsOf(multihash)));
    for await (const page of pagesOf(this.#index, this.#feed, () => this.#catchUp())) {
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

  pathOf(cid: CID): string | undefined {
    const row = this.#index.rows.get(this.#find(cid)?.segment ?? -1);
    return row && `${this.#options.objects.name}${carKey(row.id)}`;
  }

  async stat(): Promise<{ readonly blocks: number; readonly bytes: number }> {
    await this.#catchUp();
    let { bytes } = this.#writer;
    for (const row of this.#index.rows.values()) bytes += row.bytes;
    const { locations: index, condemned } = this.#index.state;
    const news = this.#writer.blocks
      .all()
      .filter(({ multihash, form }) => this.#locationOf(multihash, form) === undefined);
    const hidden = this.#suspensions.isEmpty ? 0 : condemned;
    return { blocks: index - hidden + news.length, bytes };
  }

  async compact(signal?: AbortSignal): Promise<void> {
    await this.upkeep.merge(signal);
  }

  check(cid: CID): Promise<boolean | undefined> {
    return this.#check(cid, this.#readerPast(storedSegments));
  }

  checker(): (cid: CID) => Promise<boolean | undefined> {
    const reader = this.#readerPast(inStretches);
    return (cid) => this.#check(cid, reader);
  }

  /** Returns a reader that bypasses every cache. */
  #readerPast(segments: typeof storedSegments): BlockReader {
    return new BlockReader(
      segments(this.#options.objects, (segment) => this.#index.rows.get(segment)),
      this.#checks,
    );
  }

  async #check(cid: CID, direct: BlockReader): Promise<boolean | undefined> {
    const location = this.#find(cid) ?? (await this.#findAfterRefresh(cid));
    if (location === undefined) return undefined;
    if (this.#writer.isUnfound(location.segment)) return this.#reads.check(cid, location);
    const isWhole = await direct.check(cid, location).catch((error: unknown) => {
      throw this.#noted(location, error);
    });
    if (!isWhole) this.#copies.markDamaged(location);
    return isWhole;
  }

  /**
   * Closes the store. Blocks that were put without `sync` are stored first; rejects when that
   * fails. The owner of the log closes the log.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Size of the disk cache, and numbers of reads from it and past it. */
  get cached(): { readonly bytes: number; readonly max: number; readonly hits: number; readonly misses: number } {
    return { bytes: this.#cache.bytes, max: this.#cache.max, ...this.#counts };
  }

  /** Bytes of segments that are not in the store or not known to the feed yet. */
  get waiting(): number {
    return this.#writer.bytes;
  }

  /** @internal Called when the feed knows the blocks of these segments of this host. */
  found(segments: readonly number[]): void {
    this.#writer.found(segments);
    if (this.#closing === undefined) this.upkeep.written(segments.length);
  }

  /** @internal Called when the collections with these epochs are decided. */
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
      await this.#index.close();
    }
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw failure("STORE_CLOSED");
  }

  /** Returns the location of a stored form, as far as this host knows. */
  #find(cid: CID): BytesLocation | undefined {
    this.#mustBeOpen();
    const { bytes } = cid.multihash;
    const form = formOf(cid);
    if (!this.#writer.blocks.isEmpty) {
      const open = this.#writer.blocks.find(bytes).find((block) => block.form === form);
      if (open !== undefined) return open.location;
    }
    return this.#locationOf(bytes, form);
  }

  #locationOf(multihash: Uint8Array, form: number): BytesLocation | undefined {
    const location = this.#feed.find(multihash).find((each) => each.form === form);
    return location === undefined || this.#suspensions.hides(multihash, location) ? undefined : location;
  }

  /**
   * Looks for a block that this host does not know, because another host may have stored it.
   * @throws NodeError STORE_UNAVAILABLE
   */
  async #findAfterRefresh(cid: CID): Promise<BytesLocation | undefined> {
    await this.#readLog();
    return this.#find(cid);
  }

  /**
   * Whether this host knows what collections removed before its session began. They did not ask
   * this host, so until then it may take removed blocks for stored ones. The same is true while the
   * index is rebuilt, because blocks arrive before their removal does. Without a session, this does
   * no harm: nothing can be committed.
   */
  get #isJoined(): boolean {
    const { session } = this.#log;
    return session === 0 || (session === this.#joined.session && this.#feed.resets === this.#joined.resets);
  }

  async #join(): Promise<void> {
    const { session } = this.#log;
    const { resets } = this.#feed;
    await this.#readLog();
    this.#joined = { session, resets };
  }

  /**
   * Resolves when this host knows everything that was committed anywhere. That holds until the
   * caller awaits something.
   */
  async #readLog(): Promise<void> {
    for (let resets = -1; resets !== this.#feed.resets; ) {
      this.#mustBeOpen();
      ({ resets } = this.#feed);
      await this.#log.refresh();
      if (!this.#feed.isSettled) await this.#feed.settled();
    }
    this.#mustBeOpen();
  }

  /**
   * Resolves when the index contains it as well, for callers that iterate over the index. This
   * takes a while on a host that is new to the store.
   */
  async #catchUp(): Promise<void> {
    do {
      await this.#readLog();
      await this.#feed.indexed();
    } while (this.#feed.isAhead);
    this.#mustBeOpen();
  }

  #formsOf(multihash: Uint8Array): number[] {
    const open = this.#writer.blocks.find(multihash).map(({ form }) => form);
    const stored = this.#feed.find(multihash).filter((location) => !this.#suspensions.hides(multihash, location));
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

  async #read(cid: CID, location: BytesLocation, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    const isHere = this.#cache.has(location);
    this.#counts[isHere ? "hits" : "misses"] += 1;
    const reads = isHere ? this.#reads : this.#remoteReads;
    return reads.read(cid, location, buffers).catch(async (error: unknown) => {
      if (!isGone(error)) throw this.#noted(location, error);
      // The segment was merged into another one, and this host did not know it yet.
      const moved = await this.#findAfterRefresh(cid);
      return (
        moved &&
        this.#remoteReads.read(cid, moved, buffers).catch((reason: unknown) => {
          throw this.#noted(moved, reason);
        })
      );
    });
  }

  /** Records damage that a read has found, so that the next put stores the block again. */
  #noted(location: BytesLocation, error: unknown): unknown {
    if (isLost(error) || (NodeError.is(error) && error.code === "BLOCK_CORRUPT")) this.#copies.markDamaged(location);
    return error;
  }

  /**
   * Returns the location of a block that seems to be missing. If it is undecided whether the block
   * will be removed, waits for the decision.
   *
   * @throws NodeError STORE_UNAVAILABLE
   */
  async #decided(cid: CID): Promise<BytesLocation | undefined> {
    for (;;) {
      const { change } = this.#suspensions;
      const found = await this.#findAfterRefresh(cid);
      if (found !== undefined || this.#hidden(cid) === undefined) return found;
      // The next iteration looks again. While the store is unreachable, nothing is decided and it
      // fails.
      await settledWithin(CHECK_MS, change);
    }
  }

  /** Returns the location of a block that may be removed. */
  #hidden(cid: CID): BytesLocation | undefined {
    const { bytes } = cid.multihash;
    const location = this.#feed.find(bytes).find(({ form }) => form === formOf(cid));
    return location !== undefined && this.#suspensions.hides(bytes, location) ? location : undefined;
  }

  /** Accepts any form, because a root may refer to a form that is not stored. */
  async #findAnyway(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined> {
    if (cid.multihash.code === identity.code) return cid.multihash.digest;
    const location = this.#find(cid) ?? (await this.#findAfterRefresh(cid)) ?? this.#hidden(cid);
    if (location !== undefined) return this.#read(cid, location, buffers);
    const { bytes } = cid.multihash;
    const [open] = this.#writer.blocks.find(bytes);
    const other = open ?? this.#feed.find(bytes)[0];
    return other && this.#read(cidOf(other.form, bytes), "location" in other ? other.location : other, buffers);
  }
}
