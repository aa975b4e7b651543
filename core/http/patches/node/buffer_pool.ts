/**
 * Reusable buffers of one size. Each is leased to one owner, and taken back only from that owner
 * and only once: a buffer that is released twice would belong to two owners.
 */
export class BufferPool {
  readonly #bytes: number;
  readonly #maxFree: number;
  readonly #maxLeased: number;
  readonly #free: Buffer[] = [];
  /**
   * The owner of each buffer. Weak: a buffer that its owner forgets is left to the garbage
   * collector.
   */
  readonly #owners = new WeakMap<ArrayBufferLike, object>();
  #leased = 0;

  /**
   * Keeps `maxFree` buffers for the next owner. `maxLeased`: buffers that may be leased at the same
   * time.
   */
  constructor(bytes: number, maxFree: number, maxLeased = Number.POSITIVE_INFINITY) {
    this.#bytes = bytes;
    this.#maxFree = maxFree;
    this.#maxLeased = maxLeased;
  }

  /** Number of leased buffers, which were neither released nor kept. */
  get leased(): number {
    return this.#leased;
  }

  /** Leases a buffer; undefined when too many are leased. */
  lease(owner: object): Buffer | undefined {
    if (this.#leased >= this.#maxLeased) return undefined;
    const buffer = this.#free.pop() ?? Buffer.allocUnsafeSlow(this.#bytes);
    this.#owners.set(buffer.buffer, owner);
    this.#leased += 1;
    return buffer;
  }

  /**
   * Takes back the buffer that contains these bytes. Returns false, and does nothing, when it is
   * not leased to this owner.
   */
  release(piece: Uint8Array, owner: object): boolean {
    if (!this.keep(piece, owner)) return false;
    if (this.#free.length < this.#maxFree) this.#free.push(Buffer.from(piece.buffer as ArrayBuffer));
    return true;
  }

  /**
   * Leaves the buffer that contains these bytes to its user for good. Returns false when it is not
   * leased to this owner.
   */
  keep({ buffer }: Uint8Array, owner: object): boolean {
    if (this.#owners.get(buffer) !== owner) return false;
    this.#owners.delete(buffer);
    this.#leased -= 1;
    return true;
  }
}
