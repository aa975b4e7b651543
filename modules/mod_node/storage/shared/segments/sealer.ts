/** Brings segments of this host to the object store and into the log. */
import { failure } from "../../../util/errors.ts";
import type { SegmentFiles } from "../../blockstore/segments/files.ts";
import type { Segment, SegmentId, SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { PlaceFeed } from "./feed.ts";
import { encodeIndex, isIndexInLog } from "./index_file.ts";
import { carKey, indexKey, segmentId } from "./names.ts";
import type { OpenSegment } from "./open_segment.ts";

export interface SealerDeps {
  readonly objects: ObjectStore;
  readonly log: SharedLog;
  readonly feed: PlaceFeed;
  readonly files: SegmentFiles;
}

/** Segments that may be on their way at a time. */
const MAX_UNDER_WAY = 2;

/** What a segment is called in the store. */
interface Named {
  readonly session: number;
  readonly id: SegmentId;
  isUploaded: boolean;
}

export class Sealer {
  readonly #deps: SealerDeps;
  /** Segments that are not committed, in order; with what is being done about them. */
  readonly #pending = new Map<OpenSegment, Promise<void> | undefined>();
  readonly #names = new Map<OpenSegment, Named>();
  #session = 0;
  #count = 0;

  constructor(deps: SealerDeps) {
    this.#deps = deps;
  }

  /** Takes a segment to which nothing is added any more. Call `room` first. */
  add(segment: OpenSegment): void {
    this.#pending.set(segment, undefined);
    // Whoever waits for it is told by `all` and `room`.
    this.#start(segment).catch(() => {});
  }

  get hasRoom(): boolean {
    return this.#pending.size < MAX_UNDER_WAY;
  }

  /** Resolves when another segment may be added. @throws what came in the way of the oldest */
  async room(): Promise<void> {
    while (!this.hasRoom) {
      await Promise.any([...this.#pending.keys()].map((segment) => this.#start(segment))).catch((error: unknown) => {
        throw error instanceof AggregateError ? error.errors[0] : error;
      });
    }
  }

  /** Resolves when everything that was added is committed. @throws NodeError STORE_UNAVAILABLE, SESSION_LOST, STORE_FULL */
  async all(): Promise<void> {
    await Promise.all([...this.#pending.keys()].map((segment) => this.#start(segment)));
  }

  /** An id that this session has not given yet. @throws NodeError SESSION_LOST */
  newName(): Named {
    const { session } = this.#deps.log;
    if (session === 0) throw failure("SESSION_LOST");
    if (session !== this.#session) this.#count = 0;
    this.#session = session;
    this.#count += 1;
    return { session, id: segmentId({ session, number: this.#count }), isUploaded: false };
  }

  /** Writes a segment to the object store, under the id that it gives. @throws NodeError STORE_UNAVAILABLE, STORE_FULL */
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
      // Somebody else's objects are left alone.
      if (!name.isUploaded) this.#names.delete(segment);
    }
  }

  /** Nobody asks for the name of this segment again. */
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
    // A commit whose answer was lost may have taken place.
    await log.commit(() => ({
      entries: feed.hasCome(segment.id) ? [] : [{ kind: "segment", segment }],
      result: undefined,
    }));
    feed.answered(segment.id);
  }

  /** The name of a segment; another one after the session has changed, since nobody answers for the old one's objects. */
  async #nameOf(segment: OpenSegment): Promise<Named> {
    const { log, feed } = this.#deps;
    const known = this.#names.get(segment);
    if (known?.session === log.session) return known;
    if (known !== undefined) {
      // It may have been committed in the old session: the answer was lost.
      await log.refresh();
      if (feed.hasCome(known.id)) return known;
      feed.forget(known.id);
    }
    const name = this.newName();
    this.#names.set(segment, name);
    return name;
  }
}
