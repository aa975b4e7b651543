/** Bytes that may be held at a time: who wants more than is left waits in line. */
export class WeightedSemaphore {
  #left: number;
  readonly #whole: number;
  readonly #line: { readonly bytes: number; readonly enter: () => void }[] = [];

  constructor(bytes: number) {
    this.#whole = bytes;
    this.#left = bytes;
  }

  /** At least half of it is left. */
  get isHalfFree(): boolean {
    return this.#left * 2 >= this.#whole;
  }

  /** Somebody waits. */
  get hasWaiters(): boolean {
    return this.#line.length > 0;
  }

  /** To be given back by `give`. More than the whole is granted alone. */
  acquire(bytes: number): Promise<void> | undefined {
    if (this.#line.length === 0 && this.#fits(bytes)) {
      this.#left -= bytes;
      return undefined;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#line.push({ bytes, enter: resolve });
    return promise;
  }

  release(bytes: number): void {
    this.#left += bytes;
    for (let first = this.#line[0]; first !== undefined && this.#fits(first.bytes); first = this.#line[0]) {
      this.#line.shift();
      this.#left -= first.bytes;
      first.enter();
    }
  }

  #fits(bytes: number): boolean {
    return bytes <= this.#left || this.#left === this.#whole;
  }
}
