/** Uploads segments of this host to the object store and commits them to the log. */
import { failure } from "../../../util/errors.ts";
import type { SegmentFiles } from "../../blockstore/segments/files.ts";
import type { Segment, SegmentId, SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { IndexFeed } from "./index_feed.ts";
import { encodeIndex, isIndexInLog } from "./index_file.ts";
import { carKey, indexKey, segmentId } from "./names.ts";
import type { OpenSegment } from "./open_segment.ts";

export interface SealerDeps {
  readonly objects: ObjectStore;
  readonly log: SharedLog;
  readonly feed: IndexFeed;
  readonly files: SegmentFiles;
}

/** Maximum number of segments that are uploaded or committed at a time. */
const MAX_UNDER_WAY = 2;

/** The id of a segment in the store. */
interface Named {
  readonly session: number;
  readonly id: SegmentId;
  isUploaded: boolean;
}

export class Sealer {
  readonly #deps: SealerDeps;
  /** Uncommitted segments in order, each with its running upload and commit. */
  readonly #pending = new Map<OpenSegment, Promise<void> | undefined>();
  readonly #names = new Map<OpenSegment, Named>();
  #session = 0;
  #count = 0;

  constructor(deps: SealerDeps) {
    this.#deps = deps;
  }

  /** Adds a complete segment. Call `room` first. */
  add(segment: OpenSegment): void {
    this.#pending.set(segment, undefined);
    // `all` and `room` report the error.
    this.#start(segment).catch(() => {});
  }

  get hasRoom(): boolean {
    return this.#pending.size < MAX_UNDER_WAY;
  }

  /**
   * Resolves when another segment may be added.
   * @throws the error of the oldest segment
   */
  async room(): Promise<void> {
    while (!this.hasRoom) {
      await Promise.any([...this.#pending.keys()].map((segment) => this.#start(segment))).catch((error: unknown) => {
        throw error instanceof AggregateError ? error.errors[0] : error;
      });
    }
  }

  /**
   * Resolves when all added segments are committed.
   * @throws NodeError STORE_UNAVAILABLE, SESSION_LOST, STORE_FULL
   */
  async all(): Promise<void> {
    await Promise.all([...this.#pending.keys()].map((segment) => this.#start(segment)));
  }

  /**
   * Returns an id that this session has not used yet.
   * @throws NodeError SESSION_LOST
   */
  newName(): Named {
    const { session } = this.#deps.log;
    if (session === 0) throw failure("SESSION_LOST");
    if (session !== this.#session) this.#count = 0;
    this.#session = session;
    this.#count += 1;
    return { session, id: segmentId({ session, number: this.#count }), isUploaded: false };
  }

  /**
   * Writes a segment to the object store and returns it with its id.
   * @throws NodeError STORE_UNAVAILABLE, STORE_FULL
   */
  async upload(segment: OpenSegment): Promise<Segment> {
    const { objects, files } = this.#deps;
    const { number, bytes, blocks } = segment;
    const sha256 = await segment.written();
    const isInLog = isIndexInLog(blocks.length);
    for (;;) {
      const name = await this.#nameOf(segment);
      const { id } = name;
      const index = encodeIndex(id, blocks);
      if (name.isUploaded) return { id, bytes, blocks: blocks.length, index: isInLog ? index : undefined };
      const wrote = await Promise.all([
        files.use(number, (file) => objects.putNew(carKey(id), { file, start: 0, length: bytes }, { sha256 })),
        ...(isInLog ? [] : [objects.putNew(indexKey(id), index)]),
      ]);
      name.isUploaded = !wrote.includes("different");
      // Objects of another writer must not be overwritten, so another id is tried.
      if (!name.isUploaded) this.#names.delete(segment);
    }
  }

  /** Forgets the id of a segment that is not needed again. */
  forget(segment: OpenSegment): void {
    this.#names.delete(segment);
  }

  #start(segment: OpenSegment): Promise<void> {
    const known = this.#pending.get(segment);
    if (known !== undefined) return known;
    const sealing = this.#seal(segment).then(
      () => {
        this.#pending.delete(segment);
        this.#names.delete(segment);
      },
      (error: unknown) => {
        // The next call tries again.
        this.#pending.set(segment, undefined);
        throw error;
      },
    );
    this.#pending.set(segment, sealing);
    return sealing;
  }

  async #seal(open: OpenSegment): Promise<void> {
    const { log, feed } = this.#deps;
    const segment = await this.upload(open);
    feed.expect(segment.id, open.number, open.blocks);
    // A commit whose response was lost may have succeeded.
    await log.commit(() => ({
      entries: feed.hasArrived(segment.id) ? [] : [{ kind: "segment", segment }],
      result: undefined,
    }));
    feed.confirmed(segment.id);
  }

  /**
   * Returns the id of a segment. When the session has changed, the segment gets a new id, because
   * nobody ensures that objects of the old session exist.
   */
  async #nameOf(segment: OpenSegment): Promise<Named> {
    const { log, feed } = this.#deps;
    const known = this.#names.get(segment);
    if (known?.session === log.session) return known;
    if (known !== undefined) {
      // The segment may have been committed in the old session, and the response was lost.
      await log.refresh();
      if (feed.hasArrived(known.id)) return known;
      feed.forget(known.id);
    }
    const name = this.newName();
    this.#names.set(segment, name);
    return name;
  }
}
