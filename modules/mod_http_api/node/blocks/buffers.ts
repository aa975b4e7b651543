/** Memory for blocks that are read, handed on and done with. */

/** Shorter blocks come from where Node takes small buffers; longer ones are rare. */
const shortest = 16 * 1024;
const longest = 2 * 1024 * 1024;
/** Lengths are rounded up to it, so that blocks of nearly one length share buffers. */
const step = 64 * 1024;
/** Bytes that are kept for later. */
const kept = 4 * 1024 * 1024;

/** So many bytes, with anything in them. */
export function unfilled(length: number): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset } = Buffer.allocUnsafe(length);
  return new Uint8Array(buffer, byteOffset, length);
}

/**
 * Buffers that are used again: memory that the garbage collector has to find costs more than reading a block does.
 * Whoever reads into these gives each back once, when nobody looks at its bytes any more; one that is never given back
 * is garbage like any other.
 */
export class Buffers {
  readonly #free = new Map<number, ArrayBuffer[]>();
  readonly #lent = new WeakSet<ArrayBufferLike>();
  #bytes = 0;

  /** See `unfilled`. */
  take(length: number): Uint8Array<ArrayBuffer> {
    if (length < shortest || length > longest) return unfilled(length);
    const capacity = Math.ceil(length / step) * step;
    let buffer = this.#free.get(capacity)?.pop();
    if (buffer === undefined) buffer = Buffer.allocUnsafeSlow(capacity).buffer;
    else this.#bytes -= capacity;
    this.#lent.add(buffer);
    return new Uint8Array(buffer, 0, length);
  }

  /** From now on a buffer is not taken back: parts of its bytes live on. */
  keep({ buffer }: Uint8Array): void {
    this.#lent.delete(buffer);
  }

  /** Takes back what `take` gave, whole or a part of it. Other bytes are let alone. */
  release({ buffer }: Uint8Array): void {
    if (!this.#lent.delete(buffer)) return;
    const { byteLength } = buffer;
    if (this.#bytes + byteLength > kept) return;
    this.#bytes += byteLength;
    const free = this.#free.get(byteLength);
    if (free === undefined) this.#free.set(byteLength, [buffer as ArrayBuffer]);
    else free.push(buffer as ArrayBuffer);
  }
}
