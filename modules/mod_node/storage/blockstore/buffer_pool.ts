/** A pool of buffers for blocks that are read, passed on and released. */

import { forget } from "./origins.ts";

/** Shorter blocks come from Node's own pool of small buffers; longer ones are rare. */
export const MIN_POOLED_BYTES = 16 * 1024;
const MAX_POOLED = 2 * 1024 * 1024;
/** Lengths are rounded up to a multiple of this, so that blocks of similar length share buffers. */
const step = 64 * 1024;
/** Bytes of free buffers that are kept. */
const MAX_FREE_BYTES = 4 * 1024 * 1024;

/** `length` bytes with any content. */
export function allocUnsafe(length: number): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset } = Buffer.allocUnsafe(length);
  return new Uint8Array(buffer, byteOffset, length);
}

/**
 * Reuses buffers: leaving them to the garbage collector costs more than reading the blocks does. Whoever reads into a
 * buffer releases it once, when its bytes are no longer used, and so does each of those who share one; a buffer that is
 * never released is collected like any other.
 */
export class BufferPool {
  readonly #free = new Map<number, ArrayBuffer[]>();
  /** How many have not released it. */
  readonly #lent = new WeakMap<ArrayBufferLike, number>();
  /** Who reads into it wants each block as it is stored now, not as it was read a moment ago for somebody else. */
  readonly readsAnew: boolean;
  #bytes = 0;

  constructor({ readsAnew = false }: { readonly readsAnew?: boolean } = {}) {
    this.readsAnew = readsAnew;
  }

  /** See `allocUnsafe`. It is taken back once as many as share it have released it. */
  take(length: number, sharers = 1): Uint8Array<ArrayBuffer> {
    if (length < MIN_POOLED_BYTES || length > MAX_POOLED) return allocUnsafe(length);
    const capacity = Math.ceil(length / step) * step;
    let buffer = this.#free.get(capacity)?.pop();
    if (buffer === undefined) buffer = Buffer.allocUnsafeSlow(capacity).buffer;
    else this.#bytes -= capacity;
    this.#lent.set(buffer, sharers);
    return new Uint8Array(buffer, 0, length);
  }

  /** The buffer will not be taken back when it is released, since parts of its bytes are still in use. */
  retain({ buffer }: Uint8Array): void {
    this.#lent.delete(buffer);
  }

  /** Takes back a buffer that `take` gave, or a view of it. Other arrays are ignored. */
  release({ buffer }: Uint8Array): void {
    const sharers = this.#lent.get(buffer);
    if (sharers === undefined) return;
    if (sharers > 1) {
      this.#lent.set(buffer, sharers - 1);
      return;
    }
    this.#lent.delete(buffer);
    const { byteLength } = buffer;
    forget(buffer);
    const free = this.#free.get(byteLength) ?? [];
    // Last in the order: lengths that were released longest ago are freed first.
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

  /** Frees buffers of other lengths; otherwise the lengths that were used first would be kept for good. */
  #makeRoom(wanted: number): void {
    for (const [capacity, free] of this.#free) {
      for (; this.#bytes + wanted > MAX_FREE_BYTES && free.length > 0; this.#bytes -= capacity) free.pop()?.transfer(0);
      if (this.#bytes + wanted <= MAX_FREE_BYTES) return;
      this.#free.delete(capacity);
    }
  }
}
