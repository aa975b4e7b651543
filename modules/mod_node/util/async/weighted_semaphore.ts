/** A semaphore that counts bytes. Callers that want more than is free wait in line. */
export class WeightedSemaphore {
  #available: number;
  readonly #capacity: number;
  readonly #waiters: { readonly bytes: number; readonly enter: () => void }[] = [];

  constructor(bytes: number) {
    this.#capacity = bytes;
    this.#available = bytes;
  }

  /** Whether at least half of the capacity is free. */
  get isHalfFree(): boolean {
    return this.#available * 2 >= this.#capacity;
  }

  /** Whether somebody is waiting. */
  get hasWaiters(): boolean {
    return this.#waiters.length > 0;
  }

  /** Whether `acquire` would grant this number of bytes immediately. */
  isFree(bytes: number): boolean {
    return this.#waiters.length === 0 && this.#fits(bytes);
  }

  /**
   * Acquires bytes until `release` returns them. A request that exceeds the capacity is granted
   * once nothing else is acquired.
   */
  acquire(bytes: number): Promise<void> | undefined {
    if (this.isFree(bytes)) {
      this.#available -= bytes;
      return undefined;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ bytes, enter: resolve });
    return promise;
  }

  release(bytes: number): void {
    this.#available += bytes;
    for (let first = this.#waiters[0]; first !== undefined && this.#fits(first.bytes); first = this.#waiters[0]) {
      this.#waiters.shift();
      this.#available -= first.bytes;
      first.enter();
    }
  }

  #fits(bytes: number): boolean {
    return bytes <= this.#available || this.#available === this.#capacity;
  }
}
