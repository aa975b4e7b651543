/** Takes blocks into segments of this host, and brings those to the store. */
import { failure } from "../../../util/errors.ts";
import type { Block } from "../../blockstore/store.ts";
import type { Segment, SegmentId, SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { SegmentCache } from "./cache.ts";
import type { PlaceFeed } from "./feed.ts";
import type { SegmentNumbers } from "./numbers.ts";
import { OpenBlocks, OpenSegment } from "./open_segment.ts";
import { Sealer } from "./sealer.ts";

export interface WriterDeps {
  readonly folder: string;
  readonly objects: ObjectStore;
  readonly log: SharedLog;
  readonly cache: SegmentCache;
  readonly feed: PlaceFeed;
  readonly numbers: SegmentNumbers;
  /** Length of a segment. */
  readonly segmentBytes: number;
  /** Bytes that may wait to be written to the disk. */
  readonly bufferedBytes: number;
}

/**
 * Length of the first segment after a sync; the next ones are twice as long each, up to the full length. So the object store is
 * at work soon, and what is written in bulk takes few requests.
 */
const FIRST_BYTES = 16 * 2 ** 20;

export class SegmentWriter {
  readonly #deps: WriterDeps;
  readonly #sealer: Sealer;
  /** Length at which the present segment is full. */
  #fullBytes: number;
  /** What the feed does not find yet. */
  readonly blocks = new OpenBlocks();
  readonly #unfound = new Map<number, OpenSegment>();
  /** The segment that blocks are added to. */
  #open: OpenSegment | undefined;
  #beginning: Promise<void> | undefined;
  #syncing: Promise<void> = Promise.resolve();
  #nextSync: Promise<void> | undefined;

  constructor(deps: WriterDeps) {
    this.#deps = deps;
    this.#fullBytes = Math.min(FIRST_BYTES, deps.segmentBytes);
    this.#sealer = new Sealer({ ...deps, files: deps.cache.own });
  }

  /** Bytes of segments whose blocks the feed does not find yet. */
  get bytes(): number {
    return [...this.#unfound.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Whether `add` can be called now; otherwise `prepareFor` first. */
  isReadyFor(block: Block): boolean {
    return this.#open?.fits(block, this.#fullBytes) === true && this.#open.hasRoom;
  }

  /** One step on the way to a segment that takes the block: that is the backpressure. @throws NodeError */
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

  /** What was added before is in the store. Calls that come while one is under way share the next. @throws NodeError */
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
    // While the store takes nothing, calls that fail share a segment: one for each would heap up.
    await this.#sealer.room();
    this.#fullBytes = Math.min(FIRST_BYTES, this.#deps.segmentBytes);
    if (this.#open !== undefined && this.#open.blocks.length > 0) this.#seal(this.#open);
    await this.#sealer.all();
  }

  /** A segment that nobody else adds to. @throws NodeError STORE_FULL */
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

  /** Writes a segment of `begin` to the object store, for a commit of the caller. @throws NodeError STORE_UNAVAILABLE, STORE_FULL */
  async upload(open: OpenSegment): Promise<Segment> {
    const segment = await this.#sealer.upload(open);
    this.#deps.feed.expect(segment.id, open.number, open.blocks);
    return segment;
  }

  /** An id that neither a segment nor anything else has. @throws NodeError SESSION_LOST */
  newId(): SegmentId {
    return this.#sealer.newName().id;
  }

  /** What `upload` wrote is committed. */
  uploaded(open: OpenSegment, { id }: Segment): void {
    this.#sealer.forget(open);
    this.#deps.feed.answered(id);
  }

  /** Nothing comes of a segment of `begin`. */
  discard(open: OpenSegment, uploaded: Segment | undefined): void {
    if (uploaded !== undefined) this.#deps.feed.forget(uploaded.id);
    this.#sealer.forget(open);
    this.#unfound.delete(open.number);
    this.#deps.cache.forget(open.number);
    this.#deps.numbers.giveBack(open.number);
  }

  /** Whether blocks of a segment of this host are found here only. */
  isUnfound(segment: number): boolean {
    return this.#unfound.has(segment);
  }

  /** Blocks of these segments of this host are found by the feed. */
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
