/** A chunker finds the ends of chunks in a buffer that fills up. */

export interface Chunker {
  /** Length of the longest chunk in bytes. */
  readonly maxLength: number;
  /**
   * Looks for the end of the chunk that begins at offset `from` of `bytes`. The bytes up to `end`
   * are available; the previous call has already searched those before its own `end`. Returns the
   * offset after the last byte of the chunk, or -1 if the chunk continues. After a call that
   * returned an offset, the next call begins a new chunk. `end - from` never exceeds `maxLength`. A
   * chunk is never empty, and ends at the latest after `maxLength` bytes.
   */
  cut(bytes: Uint8Array, from: number, end: number): number;
}

/** Cuts chunks of a fixed size. */
export class SizeChunker implements Chunker {
  readonly maxLength: number;

  constructor(size: number) {
    this.maxLength = size;
  }

  cut(_bytes: Uint8Array, from: number, end: number): number {
    return end - from >= this.maxLength ? from + this.maxLength : -1;
  }
}

/**
 * Puts the whole file into one chunk. A file longer than `limit` bytes is rejected with `fault`.
 */
export class WholeChunker implements Chunker {
  readonly maxLength: number;
  readonly #fault: Error;

  constructor(limit: number, fault: Error) {
    // The additional byte distinguishes a file of exactly `limit` bytes from a longer one.
    this.maxLength = limit + 1;
    this.#fault = fault;
  }

  cut(_bytes: Uint8Array, from: number, end: number): number {
    if (end - from >= this.maxLength) throw this.#fault;
    return -1;
  }
}
