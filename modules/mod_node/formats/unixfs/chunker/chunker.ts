/** Chunkers find the ends of chunks in a buffer that fills up. */

export interface Chunker {
  /** Length of the longest chunk in bytes. */
  readonly maxLength: number;
  /**
   * Looks for the end of the chunk that begins at `from` in `bytes`. The bytes up to `end` are
   * there; those before the `end` of the previous call were looked at. Gives the offset after the
   * chunk's last byte, or -1 when the chunk goes on; after an offset the next call begins a new
   * chunk. `end - from` never exceeds `maxLength`. A chunk is never empty, and one of `maxLength`
   * bytes always ends.
   */
  cut(bytes: Uint8Array, from: number, end: number): number;
}

/** Chunks of one size. */
export class SizeChunker implements Chunker {
  readonly maxLength: number;

  constructor(size: number) {
    this.maxLength = size;
  }

  cut(_bytes: Uint8Array, from: number, end: number): number {
    return end - from >= this.maxLength ? from + this.maxLength : -1;
  }
}

/** Makes one chunk of the whole file. A file longer than `limit` bytes is refused with `fault`. */
export class WholeChunker implements Chunker {
  readonly maxLength: number;
  readonly #fault: Error;

  constructor(limit: number, fault: Error) {
    // One byte more distinguishes a file of exactly `limit` bytes from a longer one.
    this.maxLength = limit + 1;
    this.#fault = fault;
  }

  cut(_bytes: Uint8Array, from: number, end: number): number {
    if (end - from >= this.maxLength) throw this.#fault;
    return -1;
  }
}
