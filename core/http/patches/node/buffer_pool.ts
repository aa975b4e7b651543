/**
 * Buffers of one size that serve again. Each is lent to an owner, and taken back from that one only, once: what is released
 * twice would belong to two.
 */
export class BufferPool {
  readonly #bytes: number;
  readonly #maxFree: number;
  readonly #maxLent: number;
  readonly #free: Buffer[] = [];
  /** Whose each is. Weak: a buffer that its owner forgets is left to the garbage collector. */
  readonly #owners = new WeakMap<ArrayBufferLike, object>();
  #lent = 0;

  /** Keeps `maxFree` buffers for the next owner. `maxLent`: at the same time. */
  constructor(bytes: number, maxFree: number, maxLent = Number.POSITIVE_INFINITY) {
    this.#bytes = bytes;
    this.#maxFree = maxFree;
    this.#maxLent = maxLent;
  }

  /** Buffers that were lent, and neither released nor kept. */
  get lent(): number {
    return this.#lent;
  }

  /** Undefined when too many are lent. */
  lend(owner: object): Buffer | undefined {
    if (this.#lent >= this.#maxLent) return undefined;
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
    this.#owners.set(buffer.buffer, owner);
    this.#lent += 1;
    return buffer;
  }

  /** Has the buffer that these bytes are in serve again; false, and nothing is done, if it is not lent to this owner. */
  release(piece: Uint8Array, owner: object): boolean {
    if (!this.keep(piece, owner)) return false;
    if (this.#free.length < this.#maxFree) this.#free.push(Buffer.from(piece.buffer as ArrayBuffer));
    return true;
  }

  /** Leaves the buffer that these bytes are in to whoever has them; false if it is not lent to this owner. */
  keep({ buffer }: Uint8Array, owner: object): boolean {
    if (this.#owners.get(buffer) !== owner) return false;
    this.#owners.delete(buffer);
    this.#lent -= 1;
    return true;
  }
}
