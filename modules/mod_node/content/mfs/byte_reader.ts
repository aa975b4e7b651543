/** Reads content in portions of a given size first, and streams the rest. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece: Uint8Array | undefined;
  #left: number;
  #taken = 0;

  /** Reads at most `limit` bytes. */
  constructor(source: AsyncIterable<Uint8Array>, limit = Number.POSITIVE_INFINITY) {
    this.#source = source[Symbol.asyncIterator]();
    this.#left = limit;
  }

  /** Number of bytes that were returned. */
  get taken(): number {
    return this.#taken;
  }

  /** Whether any bytes are left. */
  async more(): Promise<boolean> {
    while (this.#piece === undefined && this.#left > 0) {
      const { done, value } = await this.#source.next();
      if (done) this.#left = 0;
      else if (value.length > 0) this.#piece = value.length > this.#left ? value.subarray(0, this.#left) : value;
    }
    return this.#piece !== undefined;
  }

  /** Copies the next bytes into `into`, until it is full or nothing is left. */
  async fill(into: Uint8Array): Promise<void> {
    for (let at = 0; at < into.length && (await this.more()); ) {
      const taken = (this.#piece as Uint8Array).subarray(0, into.length - at);
      into.set(taken, at);
      at += taken.length;
      this.#take(taken.length);
    }
  }

  /** Yields everything that is left. */
  async *rest(): AsyncGenerator<Uint8Array, void, undefined> {
    while (await this.more()) {
      const piece = this.#piece as Uint8Array;
      this.#take(piece.length);
      yield piece;
    }
  }

  /** To be called in any case; nothing more is read afterwards. */
  async close(): Promise<void> {
    this.#left = 0;
    this.#piece = undefined;
    await this.#source.return?.();
  }

  #take(length: number): void {
    const piece = this.#piece as Uint8Array;
    this.#piece = length < piece.length ? piece.subarray(length) : undefined;
    this.#left -= length;
    this.#taken += length;
  }
}
