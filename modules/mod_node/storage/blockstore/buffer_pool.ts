/** A pool of buffers for blocks that are read, passed on and released. */

import { forget } from "./origins.ts";

/** Shorter blocks use Node's own pool of small buffers; longer ones are rare. */
export const MIN_POOLED_BYTES = 16 * 1024;
const MAX_POOLED = 2 * 1024 * 1024;
/**
 * Lengths are rounded up to a multiple of this value, so that blocks of similar length share
 * buffers.
 */
const step = 64 * 1024;
/** Maximum bytes of free buffers. */
const MAX_FREE_BYTES = 4 * 1024 * 1024;

/** Allocates `length` bytes with any content. */
export function allocUnsafe(length: number): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset } = Buffer.allocUnsafe(length);
  return new Uint8Array(buffer, byteOffset, length);
}

/**
 * Reuses buffers, because leaving them to the garbage collector costs more than reading the blocks.
 * A reader releases its buffer once, when the bytes are no longer used. When several readers share
 * a buffer, each of them releases it. A buffer that is never released is garbage-collected.
 */
export class BufferPool {
  readonly #free = new Map<number, ArrayBuffer[]>();
  /** Number of users that have not released the buffer. */
  readonly #sharers = new WeakMap<ArrayBufferLike, number>();
  /**
   * Whether readers with this pool want each block as it is stored now, not as it was read for
   * another caller a moment ago.
   */
  readonly bypassesCache: boolean;
  #bytes = 0;

  constructor({ bypassesCache = false }: { readonly bypassesCache?: boolean } = {}) {
    this.bypassesCache = bypassesCache;
  }

  /**
   * Returns a buffer; see `allocUnsafe`. It returns to the pool when `sharers` users have released
   * it.
   */
  take(length: number, sharers = 1): Uint8Array<ArrayBuffer> {
    if (length < MIN_POOLED_BYTES || length > MAX_POOLED) return allocUnsafe(length);
    const capacity = Math.ceil(length / step) * step;
    let buffer = this.#free.get(capacity)?.pop();
    if (buffer === undefined) buffer = Buffer.allocUnsafeSlow(capacity).buffer;
    else this.#bytes -= capacity;
    this.#sharers.set(buffer, sharers);
    return new Uint8Array(buffer, 0, length);
  }

  /**
   * Excludes a buffer from the pool, because parts of its bytes stay in use after it is released.
   */
  retain({ buffer }: Uint8Array): void {
    this.#sharers.delete(buffer);
  }

  /** Releases a buffer of `take`, or a view of it. Other arrays are ignored. */
  release({ buffer }: Uint8Array): void {
    const sharers = this.#sharers.get(buffer);
    if (sharers === undefined) return;
    if (sharers > 1) {
      this.#sharers.set(buffer, sharers - 1);
      return;
    }
    this.#sharers.delete(buffer);
    const { byteLength } = buffer;
    forget(buffer);
    const free = this.#free.get(byteLength) ?? [];
    // The length moves to the end, so that lengths that were released longest ago are freed first.
    this.#free.delete(byteLength);
    this.#makeRoom(byteLength);
    this.#free.set(byteLength, free);
    if (this.#bytes + byteLength > MAX_FREE_BYTES) {
      (buffer as ArrayBuffer).transfer(0);
      return;
    }
    this.#bytes += byteLength;
    free.push(buffer as ArrayBuffer);
  }

  /**
   * Frees buffers of other lengths. Otherwise, the lengths that were used first would occupy the
   * pool forever.
   */
  #makeRoom(wanted: number): void {
    for (const [capacity, free] of this.#free) {
      for (; this.#bytes + wanted > MAX_FREE_BYTES && free.length > 0; this.#bytes -= capacity) free.pop()?.transfer(0);
      if (this.#bytes + wanted <= MAX_FREE_BYTES) return;
      this.#free.delete(capacity);
    }
  }
}
