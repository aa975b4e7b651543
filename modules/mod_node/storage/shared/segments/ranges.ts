/** Fetches ranges of segments from the object store, ahead of sequential readers. */

import { WeightedSemaphore } from "../../../util/async/weighted_semaphore.ts";
import { failure } from "../../../util/errors.ts";
import { LRU } from "../../../util/lru.ts";
import type { SegmentId } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { carKey, partsOf, segmentId } from "./names.ts";

/**
 * Segments are fetched and cached in chunks of this length; the last chunk of a segment is shorter.
 */
export const CHUNK_BYTES = 1024 * 1024;
/**
 * Number of chunks in a request that fetches ahead, at first and at most. Several such requests run
 * at a time, because each takes a while to begin.
 */
const MIN_RANGE = 4;
const MAX_RANGE = 8;
const RANGES_AHEAD = 3;
/** Number of chunks that are fetched ahead of a reader, at first and at most. */
const MIN_AHEAD = MIN_RANGE;
const MAX_AHEAD = MAX_RANGE * RANGES_AHEAD;
/** A sequential reader may skip this many chunks forward or backward. */
const MAX_SKIPPED = 4;
/**
 * Maximum bytes of running requests and of chunks that wait to be cached. Reading ahead uses at
 * most half of it.
 */
const MAX_BYTES_IN_MEMORY = 64 * 1024 * 1024;
const MAX_READERS = 256;
/** A shorter range has a buffer of its exact length, which is not reused. */
const MIN_REUSED = CHUNK_BYTES / 2;
/**
 * Maximum bytes of unused buffers, and milliseconds after which they are released when nothing is
 * fetched.
 */
const MAX_FREE_BYTES = (MAX_AHEAD + MAX_RANGE) * CHUNK_BYTES;
const FREE_MS = 5000;

export interface RangesDeps {
  readonly objects: ObjectStore;
  /** Returns the segment in the store; undefined when it does not exist. */
  readonly find: (segment: number) => { readonly id: SegmentId; readonly bytes: number } | undefined;
  readonly numberOf: (id: SegmentId) => number | undefined;
  readonly isCached: (segment: number, chunk: number) => boolean;
  /** Stores a chunk in the cache; never rejects. */
  readonly store: (segment: number, chunk: number, bytes: Uint8Array) => Promise<void>;
}

/** A reader of a segment. */
interface Reader {
  last: number;
  /** Number of chunks to fetch ahead; 0 while the reader is not known to read sequentially. */
  ahead: number;
}

const chunkCount = (bytes: number): number => Math.ceil(bytes / CHUNK_BYTES);
const keyOf = (segment: number, chunk: number): string => `${segment} ${chunk}`;

export class Ranges {
  readonly #deps: RangesDeps;
  readonly #fetching = new Map<string, Promise<Uint8Array>>();
  readonly #readers = new LRU<number, Reader>(MAX_READERS);
  readonly #inMemory = new WeightedSemaphore(MAX_BYTES_IN_MEMORY);
  /**
   * Unused buffers by length. Leaving them to the garbage collector would cost more than fetching
   * does.
   */
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;
  #freeing: NodeJS.Timeout | undefined;
  readonly #closing = new AbortController();

  constructor(deps: RangesDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the bytes of a chunk that is not cached.
   * @throws NodeError STORE_UNAVAILABLE, SEGMENT_GONE
   */
  fetch(segment: number, chunk: number): Promise<Uint8Array> {
    const known = this.#fetching.get(keyOf(segment, chunk));
    if (known !== undefined) return known;
    this.#request(segment, chunk, 1);
    return this.#fetching.get(keyOf(segment, chunk)) as Promise<Uint8Array>;
  }

  /**
   * Records that a chunk is about to be read, from the cache or not, and fetches the chunks that
   * are probably read next.
   */
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

  /** Fetches `count` chunks for a reader with `ahead` chunks to fetch ahead. */
  #fetchAhead(segment: number, from: number, { count, ahead }: { count: number; ahead: number }): void {
    const found = this.#deps.find(segment);
    if (found === undefined) return;
    const end = chunkCount(found.bytes);
    const most = Math.min(MAX_RANGE, Math.max(MIN_RANGE, Math.floor(ahead / RANGES_AHEAD)));
    // Fetches whole ranges only. One request for each chunk that is read would be too many
    // requests.
    for (let first = from; first < end && first + most <= from + count; first += 1) {
      if (this.#has(segment, first)) continue;
      if (!this.#inMemory.isHalfFree) return;
      let length = 1;
      while (length < most && first + length < end && !this.#has(segment, first + length)) length += 1;
      this.#request(segment, first, length);
    }
    if (from + count > end) this.#continueIn(found.id, from + count - end, ahead);
  }

  /**
   * Continues in the segment that was written next, because it is probably read next: fetches
   * `count` chunks now, and reads as far ahead as in this segment.
   */
  #continueIn(id: SegmentId, count: number, ahead: number): void {
    const parts = partsOf(id);
    const next = parts && this.#deps.numberOf(segmentId({ ...parts, number: parts.number + 1 }));
    if (next === undefined) return;
    const reader = this.#readers.peek(next);
    // The next segment has no reader, or one that read single blocks, such as the nodes above the
    // leaves.
    if (reader === undefined || reader.ahead === 0) this.#readers.set(next, { last: -1, ahead });
    else if (reader.last !== -1) return;
    this.#fetchAhead(next, 0, { count, ahead });
  }

  #has(segment: number, chunk: number): boolean {
    return this.#deps.isCached(segment, chunk) || this.#fetching.has(keyOf(segment, chunk));
  }

  /** Sends one request for consecutive chunks. */
  #request(segment: number, first: number, count: number): void {
    const chunks = Array.from({ length: count }, () => Promise.withResolvers<Uint8Array>());
    for (const [at, { promise }] of chunks.entries()) {
      const key = keyOf(segment, first + at);
      // Reading ahead awaits no result.
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
    await this.#inMemory.acquire(length);
    const into = this.#take(length);
    const storing: Promise<void>[] = [];
    const onProgress = (there: number) => {
      while (storing.length < chunks.length) {
        const at = storing.length;
        const end = Math.min((at + 1) * CHUNK_BYTES, length);
        if (there < end) return;
        const chunk = into.subarray(at * CHUNK_BYTES, end);
        chunks[at]?.resolve(chunk);
        storing.push(this.#store(segment, first + at, chunk));
      }
    };
    try {
      const { signal } = this.#closing;
      const read = await this.#deps.objects.read(carKey(found.id), { start, length }, { into, signal, onProgress });
      if (read === undefined) throw failure("SEGMENT_GONE", { id: found.id });
    } finally {
      await Promise.all(storing);
      // By then, callers that waited for a chunk have copied it.
      setImmediate(() => {
        this.#give(into.buffer);
        this.#inMemory.release(length);
      });
    }
  }

  async #store(segment: number, chunk: number, bytes: Uint8Array): Promise<void> {
    await this.#deps.store(segment, chunk, bytes);
    this.#fetching.delete(keyOf(segment, chunk));
  }

  #take(length: number): Uint8Array<ArrayBuffer> {
    // Stores have many short segments. The buffer for one of them is not longer than the request.
    if (length < MIN_REUSED) return new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
    const capacity = Math.max(CHUNK_BYTES, 2 ** Math.ceil(Math.log2(length)));
    const reused = this.#free.get(capacity)?.pop();
    if (reused !== undefined) this.#freeBytes -= capacity;
    return new Uint8Array(reused ?? Buffer.allocUnsafeSlow(capacity).buffer);
  }

  #give(buffer: ArrayBuffer): void {
    const { byteLength } = buffer;
    const isCached = byteLength >= CHUNK_BYTES && this.#freeBytes + byteLength <= MAX_FREE_BYTES;
    if (!isCached || this.#closing.signal.aborted) return;
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
