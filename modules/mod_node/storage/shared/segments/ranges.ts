/** Fetches stretches of segments from the object store, ahead of those who read on. */

import { WeightedSemaphore } from "../../../util/async/weighted_semaphore.ts";
import { failure } from "../../../util/errors.ts";
import { LRU } from "../../../util/lru.ts";
import type { SegmentId } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { carKey, partsOf, segmentId } from "./names.ts";

/** Segments are fetched and kept in chunks of this length; the last one of each is shorter. */
export const CHUNK_BYTES = 1024 * 1024;
/** Chunks of a request that fetches ahead, at first and at most: some are under way at a time, since each takes a while to begin. */
const MIN_RANGE = 4;
const MAX_RANGE = 8;
const RANGES_AHEAD = 3;
/** Chunks that are fetched ahead of a reader at first, and at most. */
const MIN_AHEAD = MIN_RANGE;
const MAX_AHEAD = MAX_RANGE * RANGES_AHEAD;
/** Somebody who reads on may skip up to so many chunks, or come back to as many. */
const MAX_SKIPPED = 4;
/** Bytes of ranges that may be under way or wait to be kept; half of them ahead of readers. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
const MAX_READERS = 256;
/** What is shorter has a buffer of its own length, which is not kept. */
const MIN_LENT = CHUNK_BYTES / 2;
/** Bytes of buffers that are kept for the next ranges, and milliseconds until they go when none is fetched any more. */
const MAX_FREE_BYTES = (MAX_AHEAD + MAX_RANGE) * CHUNK_BYTES;
const FREE_MS = 5000;

export interface RangesDeps {
  readonly objects: ObjectStore;
  /** What the segment is in the store; undefined when it is none. */
  readonly find: (segment: number) => { readonly id: SegmentId; readonly bytes: number } | undefined;
  readonly numberOf: (id: SegmentId) => number | undefined;
  readonly isKept: (segment: number, chunk: number) => boolean;
  /** Keeps a chunk; never rejects. */
  readonly keep: (segment: number, chunk: number, bytes: Uint8Array) => Promise<void>;
}

/** Somebody who reads a segment. */
interface Reader {
  last: number;
  /** Chunks to fetch ahead; 0 while it is not known that anybody reads on. */
  ahead: number;
}

const chunkCount = (bytes: number): number => Math.ceil(bytes / CHUNK_BYTES);
const keyOf = (segment: number, chunk: number): string => `${segment} ${chunk}`;

export class Ranges {
  readonly #deps: RangesDeps;
  readonly #fetching = new Map<string, Promise<Uint8Array>>();
  readonly #readers = new LRU<number, Reader>(MAX_READERS);
  readonly #held = new WeightedSemaphore(MAX_HELD_BYTES);
  /** Buffers that nobody uses any more, by length: leaving them to the garbage collector costs more than fetching does. */
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;
  #freeing: NodeJS.Timeout | undefined;
  readonly #closing = new AbortController();

  constructor(deps: RangesDeps) {
    this.#deps = deps;
  }

  /** The bytes of a chunk that is not kept. @throws NodeError STORE_UNAVAILABLE, SEGMENT_GONE */
  fetch(segment: number, chunk: number): Promise<Uint8Array> {
    const known = this.#fetching.get(keyOf(segment, chunk));
    if (known !== undefined) return known;
    this.#request(segment, chunk, 1);
    return this.#fetching.get(keyOf(segment, chunk)) as Promise<Uint8Array>;
  }

  /** A chunk is about to be read, from the cache or not: what probably comes next is fetched. */
  reading(segment: number, chunk: number): void {
    const reader = this.#readers.get(segment) ?? { last: -1, ahead: 0 };
    this.#readers.set(segment, reader);
    const { last } = reader;
    if (chunk === last || (chunk < last && last - chunk <= MAX_SKIPPED)) return;
    reader.last = chunk;
    const readsOn = reader.ahead > 0;
    const goesOn = chunk > last && (readsOn ? chunk - last <= MAX_SKIPPED : last >= 0 && chunk === last + 1);
    reader.ahead = goesOn ? Math.min(MAX_AHEAD, Math.max(MIN_AHEAD, reader.ahead * 2)) : 0;
    if (reader.ahead > 0) this.#fetchAhead(segment, chunk + 1, { count: reader.ahead, ahead: reader.ahead });
  }

  async close(): Promise<void> {
    this.#closing.abort(failure("STORE_CLOSED"));
    await Promise.allSettled(this.#fetching.values());
    clearTimeout(this.#freeing);
  }

  /** Fetches so many chunks, for a reader who has `ahead` chunks fetched ahead. */
  #fetchAhead(segment: number, from: number, { count, ahead }: { count: number; ahead: number }): void {
    const found = this.#deps.find(segment);
    if (found === undefined) return;
    const end = chunkCount(found.bytes);
    const most = Math.min(MAX_RANGE, Math.max(MIN_RANGE, Math.floor(ahead / RANGES_AHEAD)));
    // A request each time that somebody has read one chunk more would be many.
    for (let first = from; first < end && first + most <= from + count; first += 1) {
      if (this.#has(segment, first)) continue;
      if (!this.#held.isHalfFree) return;
      let length = 1;
      while (length < most && first + length < end && !this.#has(segment, first + length)) length += 1;
      this.#request(segment, first, length);
    }
    if (from + count > end) this.#goOnIn(found.id, from + count - end, ahead);
  }

  /** What was written next is probably read next: so many chunks of it now, and as many ahead as the reader had here. */
  #goOnIn(id: SegmentId, count: number, ahead: number): void {
    const parts = partsOf(id);
    const next = parts && this.#deps.numberOf(segmentId({ ...parts, number: parts.number + 1 }));
    if (next === undefined) return;
    const reader = this.#readers.peek(next);
    // Nobody, or somebody who wanted a block here and there, such as the nodes above those that are read.
    if (reader === undefined || reader.ahead === 0) this.#readers.set(next, { last: -1, ahead });
    else if (reader.last !== -1) return;
    this.#fetchAhead(next, 0, { count, ahead });
  }

  #has(segment: number, chunk: number): boolean {
    return this.#deps.isKept(segment, chunk) || this.#fetching.has(keyOf(segment, chunk));
  }

  /** Begins a request for chunks that follow each other. */
  #request(segment: number, first: number, count: number): void {
    const chunks = Array.from({ length: count }, () => Promise.withResolvers<Uint8Array>());
    for (const [at, { promise }] of chunks.entries()) {
      const key = keyOf(segment, first + at);
      // Who reads ahead awaits nothing.
      promise.catch(() => {});
      this.#fetching.set(key, promise);
    }
    this.#read(segment, first, chunks).catch((error: unknown) => {
      for (const [at, { promise, reject }] of chunks.entries()) {
        reject(error);
        const key = keyOf(segment, first + at);
        if (this.#fetching.get(key) === promise) this.#fetching.delete(key);
      }
    });
  }

  async #read(segment: number, first: number, chunks: readonly PromiseWithResolvers<Uint8Array>[]): Promise<void> {
    const found = this.#deps.find(segment);
    if (found === undefined) throw failure("SEGMENT_GONE", { id: String(segment) });
    const start = first * CHUNK_BYTES;
    const length = Math.min(chunks.length * CHUNK_BYTES, found.bytes - start);
    await this.#held.acquire(length);
    const into = this.#take(length);
    const keeping: Promise<void>[] = [];
    const onProgress = (there: number) => {
      while (keeping.length < chunks.length) {
        const at = keeping.length;
        const end = Math.min((at + 1) * CHUNK_BYTES, length);
        if (there < end) return;
        const chunk = into.subarray(at * CHUNK_BYTES, end);
        chunks[at]?.resolve(chunk);
        keeping.push(this.#keep(segment, first + at, chunk));
      }
    };
    try {
      const { signal } = this.#closing;
      const read = await this.#deps.objects.read(carKey(found.id), { start, length }, { into, signal, onProgress });
      if (read === undefined) throw failure("SEGMENT_GONE", { id: found.id });
    } finally {
      await Promise.all(keeping);
      // Those who waited for it have their copies by then.
      setImmediate(() => {
        this.#give(into.buffer);
        this.#held.release(length);
      });
    }
  }

  async #keep(segment: number, chunk: number, bytes: Uint8Array): Promise<void> {
    await this.#deps.keep(segment, chunk, bytes);
    this.#fetching.delete(keyOf(segment, chunk));
  }

  #take(length: number): Uint8Array<ArrayBuffer> {
    // Stores have many short segments: what is held for one is no more than was asked for.
    if (length < MIN_LENT) return new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
    const capacity = Math.max(CHUNK_BYTES, 2 ** Math.ceil(Math.log2(length)));
    const kept = this.#free.get(capacity)?.pop();
    if (kept !== undefined) this.#freeBytes -= capacity;
    return new Uint8Array(kept ?? Buffer.allocUnsafeSlow(capacity).buffer);
  }

  #give(buffer: ArrayBuffer): void {
    const { byteLength } = buffer;
    const isKept = byteLength >= CHUNK_BYTES && this.#freeBytes + byteLength <= MAX_FREE_BYTES;
    if (!isKept || this.#closing.signal.aborted) return;
    const free = this.#free.get(byteLength) ?? [];
    free.push(buffer);
    this.#free.set(byteLength, free);
    this.#freeBytes += byteLength;
    this.#freeing ??= setTimeout(() => this.#forget(), FREE_MS).unref();
    this.#freeing.refresh();
  }

  #forget(): void {
    this.#free.clear();
    this.#freeBytes = 0;
  }
}
