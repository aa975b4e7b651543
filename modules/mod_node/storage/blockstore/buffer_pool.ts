/** Memory for blocks that are read, handed on and done with. */

/** Shorter blocks come from where Node takes small buffers; longer ones are rare. */
const MIN_POOLED = 16 * 1024;
const MAX_POOLED = 2 * 1024 * 1024;
/** Lengths are rounded up to it, so that blocks of nearly one length share buffers. */
const step = 64 * 1024;
/** Bytes that are kept for later. */
const MAX_FREE_BYTES = 4 * 1024 * 1024;

/** So many bytes, with anything in them. */
export function allocUnsafe(length: number): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset } = Buffer.allocUnsafe(length);
  return new Uint8Array(buffer, byteOffset, length);
}

/**
 * Buffers that are used again: memory that the garbage collector has to find costs more than reading a block does.
 * Whoever reads into these gives each back once, when nobody looks at its bytes any more; one that is never given back
 * is garbage like any other.
 */
export class BufferPool {
  readonly #free = new Map<number, ArrayBuffer[]>();
  readonly #lent = new WeakSet<ArrayBufferLike>();
  #bytes = 0;

  /** See `unfilled`. */
  take(length: number): Uint8Array<ArrayBuffer> {
    if (length < MIN_POOLED || length > MAX_POOLED) return allocUnsafe(length);
    const capacity = Math.ceil(length / step) * step;
    let buffer = this.#free.get(capacity)?.pop();
    if (buffer === undefined) buffer = Buffer.allocUnsafeSlow(capacity).buffer;
    else this.#bytes -= capacity;
    this.#lent.add(buffer);
    return new Uint8Array(buffer, 0, length);
  }

  /** From now on a buffer is not taken back: parts of its bytes live on. */
  retain({ buffer }: Uint8Array): void {
    this.#lent.delete(buffer);
  }

  /** Takes back what `take` gave, whole or a part of it. Other bytes are let alone. */
  release({ buffer }: Uint8Array): void {
    if (!this.#lent.delete(buffer)) return;
    const { byteLength } = buffer;
    const free = this.#free.get(byteLength) ?? [];
    // Last in the order: the length that came back longest ago makes room first.
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

  /** Frees buffers that were kept of other lengths: else those that were used first would be kept for good. */
  #makeRoom(wanted: number): void {
    for (const [capacity, free] of this.#free) {
      for (; this.#bytes + wanted > MAX_FREE_BYTES && free.length > 0; this.#bytes -= capacity) free.pop()?.transfer(0);
      if (this.#bytes + wanted <= MAX_FREE_BYTES) return;
      this.#free.delete(capacity);
    }
  }
}
