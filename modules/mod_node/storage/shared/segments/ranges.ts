/** Fetches stretches of segments from the object store, ahead of those who read on. */

import { WeightedSemaphore } from "../../../util/async/weighted_semaphore.ts";
import { failure } from "../../../util/errors.ts";
import { LRU } from "../../../util/lru.ts";
import type { SegmentId } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import { carKey, partsOf, segmentId } from "./names.ts";

/** Segments are fetched and kept in chunks of this length; the last one of each is shorter. */
export const CHUNK_BYTES = 1024 * 1024;
/** Chunks of a request that fetches ahead. */
const RANGE_CHUNKS = 4;
/** Chunks that are fetched ahead of a reader at first, and at most. */
const MIN_AHEAD = 4;
const MAX_AHEAD = 24;
/** Somebody who reads on may skip up to so many chunks, or come back to as many. */
const MAX_SKIPPED = 4;
/** Bytes that may be under way or wait to be kept. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;
const MAX_READERS = 256;
/** Shorter chunks have a buffer of their own length, which is not kept. */
const MIN_LENT = CHUNK_BYTES / 2;
/** Buffers that are kept for the next chunks. */
const MAX_FREE = 16;

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
const chunkLength = (bytes: number, chunk: number): number => Math.min(CHUNK_BYTES, bytes - chunk * CHUNK_BYTES);
const keyOf = (segment: number, chunk: number): string => `${segment} ${chunk}`;

export class Ranges {
  readonly #deps: RangesDeps;
  readonly #fetching = new Map<string, Promise<Uint8Array>>();
  readonly #readers = new LRU<number, Reader>(MAX_READERS);
  readonly #held = new WeightedSemaphore(MAX_HELD_BYTES);
  /** Buffers of chunks that nobody uses any more: leaving them to the garbage collector costs more than fetching does. */
  readonly #free: Uint8Array[] = [];
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
    if (reader.ahead > 0) this.#fetchAhead(segment, chunk + 1, reader.ahead);
  }

  async close(): Promise<void> {
    this.#closing.abort(failure("STORE_CLOSED"));
    await Promise.allSettled(this.#fetching.values());
  }

  #fetchAhead(segment: number, from: number, count: number): void {
    const found = this.#deps.find(segment);
    if (found === undefined) return;
    const end = chunkCount(found.bytes);
    // A request each time that somebody has read one chunk more would be many.
    for (let first = from; first < end && first + RANGE_CHUNKS <= from + count; first += 1) {
      if (this.#has(segment, first)) continue;
      if (!this.#held.isHalfFree) return;
      let length = 1;
      while (length < RANGE_CHUNKS && first + length < end && !this.#has(segment, first + length)) length += 1;
      this.#request(segment, first, length);
    }
    if (from + count > end) this.#goOnIn(found.id, from + count - end);
  }

  /** What was written next is probably read next. */
  #goOnIn(id: SegmentId, count: number): void {
    const parts = partsOf(id);
    const next = parts && this.#deps.numberOf(segmentId({ ...parts, number: parts.number + 1 }));
    if (next === undefined) return;
    const reader = this.#readers.peek(next) ?? { last: -1, ahead: MIN_AHEAD };
    if (reader.last !== -1) return;
    this.#readers.set(next, reader);
    this.#fetchAhead(next, 0, count);
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
    const lengths = chunks.map((_, at) => chunkLength(found.bytes, first + at));
    const bytes = lengths.reduce((sum, length) => sum + length, 0);
    const range = { start: first * CHUNK_BYTES, length: bytes };
    await this.#held.acquire(bytes);
    let left = bytes;
    try {
      const stream = await this.#deps.objects.stream(carKey(found.id), { range, signal: this.#closing.signal });
      if (stream === undefined) throw failure("SEGMENT_GONE", { id: found.id });
      const keeping: Promise<void>[] = [];
      const done = (at: number, chunk: Uint8Array) => {
        chunks[at]?.resolve(chunk);
        left -= chunk.length;
        keeping.push(this.#keep(segment, first + at, chunk));
      };
      await inChunks(stream.body, lengths, { allocate: (length) => this.#take(length), done });
      await Promise.all(keeping);
    } finally {
      this.#held.release(left);
    }
  }

  async #keep(segment: number, chunk: number, bytes: Uint8Array): Promise<void> {
    await this.#deps.keep(segment, chunk, bytes);
    this.#fetching.delete(keyOf(segment, chunk));
    this.#held.release(bytes.length);
    // Those who waited for it have their copies by then.
    setImmediate(() => {
      const isLent = bytes.buffer.byteLength === CHUNK_BYTES;
      if (isLent && this.#free.length < MAX_FREE) this.#free.push(new Uint8Array(bytes.buffer));
    });
  }

  #take(length: number): Uint8Array {
    // Stores have many short segments: what is held for one is no more than was asked for.
    if (length < MIN_LENT) return new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
    return (this.#free.pop() ?? new Uint8Array(Buffer.allocUnsafeSlow(CHUNK_BYTES).buffer)).subarray(0, length);
  }
}

interface Chunks {
  readonly allocate: (length: number) => Uint8Array;
  readonly done: (at: number, chunk: Uint8Array) => void;
}

/** Calls `done` with each of the arrays of these lengths that a stream fills, one after the other. */
async function inChunks(
  body: AsyncIterable<Uint8Array>,
  lengths: readonly number[],
  { allocate, done }: Chunks,
): Promise<void> {
  let at = 0;
  let chunk = allocate(lengths[0] ?? 0);
  let filled = 0;
  for await (const piece of body) {
    for (let used = 0; used < piece.length; ) {
      const part = piece.subarray(used, used + chunk.length - filled);
      chunk.set(part, filled);
      filled += part.length;
      used += part.length;
      if (filled < chunk.length) continue;
      done(at, chunk);
      at += 1;
      if (at === lengths.length) return;
      chunk = allocate(lengths[at] ?? 0);
      filled = 0;
    }
  }
  throw failure("STORE_UNAVAILABLE", { reason: "an object ended too early" });
}
