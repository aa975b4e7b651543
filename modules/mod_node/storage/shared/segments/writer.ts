/** Writes blocks to segments of this host, and the segments to the store. */
import { failure } from "../../../util/errors.ts";
import type { Block } from "../../blockstore/store.ts";
import type { Segment, SegmentId, SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { SegmentCache } from "./cache.ts";
import type { IndexFeed } from "./index_feed.ts";
import type { SegmentNumbers } from "./numbers.ts";
import { OpenBlocks, OpenSegment } from "./open_segment.ts";
import { Sealer } from "./sealer.ts";

export interface WriterDeps {
  readonly folder: string;
  readonly objects: ObjectStore;
  readonly log: SharedLog;
  readonly cache: SegmentCache;
  readonly feed: IndexFeed;
  readonly numbers: SegmentNumbers;
  /** Maximum length of a segment. */
  readonly segmentBytes: number;
  /** Bytes that may wait to be written to the disk. */
  readonly bufferedBytes: number;
}

/**
 * Length of the first segment after a sync. Each of the next ones is twice as long, up to the full
 * length. So uploads begin early, and bulk writes need few requests.
 */
const FIRST_BYTES = 16 * 2 ** 20;

export class SegmentWriter {
  readonly #deps: WriterDeps;
  readonly #sealer: Sealer;
  /** Length at which the current segment is full. */
  #fullBytes: number;
  /** Blocks that the feed does not know yet. */
  readonly blocks = new OpenBlocks();
  readonly #unfound = new Map<number, OpenSegment>();
  /** The segment to which blocks are added. */
  #open: OpenSegment | undefined;
  #beginning: Promise<void> | undefined;
  #syncing: Promise<void> = Promise.resolve();
  #nextSync: Promise<void> | undefined;

  constructor(deps: WriterDeps) {
    this.#deps = deps;
    this.#fullBytes = Math.min(FIRST_BYTES, deps.segmentBytes);
    this.#sealer = new Sealer({ ...deps, files: deps.cache.own });
  }

  /** Bytes of segments whose blocks the feed does not know yet. */
  get bytes(): number {
    return [...this.#unfound.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Whether `add` can be called now; otherwise, `prepareFor` must be called first. */
  isReadyFor(block: Block): boolean {
    return this.#open?.fits(block, this.#fullBytes) === true && this.#open.hasRoom;
  }

  /**
   * Takes one step towards a segment that has room for the block. Waiting for it is the
   * backpressure.
   * @throws NodeError
   */
  async prepareFor(block: Block): Promise<void> {
    const open = this.#open;
    if (open === undefined) {
      this.#beginning ??= this.begin()
        .then((segment) => {
          this.#open = segment;
        })
        .finally(() => {
          this.#beginning = undefined;
        });
      return this.#beginning;
    }
    if (open.fits(block, this.#fullBytes)) return open.room();
    if (!this.#sealer.hasRoom) return this.#sealer.room();
    this.#fullBytes = Math.min(2 * this.#fullBytes, this.#deps.segmentBytes);
    this.#seal(open);
  }

  add(block: Block): void {
    this.blocks.add((this.#open as OpenSegment).add(block));
  }

  /**
   * Resolves when all blocks that were added before are in the store. Calls during a sync share the
   * next one.
   * @throws NodeError
   */
  sync(): Promise<void> {
    this.#nextSync ??= this.#syncing
      .catch(() => {})
      .then(() => {
        this.#nextSync = undefined;
        this.#syncing = this.#sealAll();
        return this.#syncing;
      });
    return this.#nextSync;
  }

  async #sealAll(): Promise<void> {
    // While the store refuses writes, failing calls share a segment: one segment per call would
    // accumulate.
    await this.#sealer.room();
    this.#fullBytes = Math.min(FIRST_BYTES, this.#deps.segmentBytes);
    if (this.#open !== undefined && this.#open.blocks.length > 0) this.#seal(this.#open);
    await this.#sealer.all();
  }

  /**
   * Begins a segment to which only the caller adds blocks.
   * @throws NodeError STORE_FULL
   */
  async begin(): Promise<OpenSegment> {
    const { folder, cache, numbers, bufferedBytes } = this.#deps;
    const number = numbers.take();
    cache.begin(number);
    try {
      const open = await OpenSegment.begin(cache.own, number, bufferedBytes);
      this.#unfound.set(number, open);
      return open;
    } catch (error) {
      throw failure("STORE_FULL", { path: folder, reason: (error as Error).message }, error);
    }
  }

  /**
   * Writes a segment of `begin` to the object store; the caller commits it.
   * @throws NodeError STORE_UNAVAILABLE, STORE_FULL
   */
  async upload(open: OpenSegment): Promise<Segment> {
    const segment = await this.#sealer.upload(open);
    this.#deps.feed.expect(segment.id, open.number, open.blocks);
    return segment;
  }

  /**
   * Returns a unique id that belongs to no segment.
   * @throws NodeError SESSION_LOST
   */
  newId(): SegmentId {
    return this.#sealer.newName().id;
  }

  /** Records that a segment of `upload` was committed. */
  uploaded(open: OpenSegment, { id }: Segment): void {
    this.#sealer.forget(open);
    this.#deps.feed.confirmed(id);
  }

  /** Discards a segment of `begin`. */
  discard(open: OpenSegment, uploaded: Segment | undefined): void {
    if (uploaded !== undefined) this.#deps.feed.forget(uploaded.id);
    this.#sealer.forget(open);
    this.#unfound.delete(open.number);
    this.#deps.cache.forget(open.number);
    this.#deps.numbers.giveBack(open.number);
  }

  /** Whether only this object knows the blocks of a segment, and the feed does not. */
  isUnfound(segment: number): boolean {
    return this.#unfound.has(segment);
  }

  /** Called when the feed knows the blocks of these segments of this host. */
  found(segments: readonly number[]): void {
    for (const number of segments) {
      const open = this.#unfound.get(number);
      if (open === undefined) continue;
      this.#unfound.delete(number);
      this.blocks.remove(open);
      this.#deps.cache.stored(number, open.bytes);
    }
  }

  #seal(open: OpenSegment): void {
    this.#open = undefined;
    this.#sealer.add(open);
  }
}
