/** Byte streams that are opened on demand. */

/** A stream that is opened when one of its members is first used, and can be read once. */
export interface ByteStream extends AsyncIterable<Uint8Array> {
  /** Resolves when the first bytes can be read; rejects if they cannot. */
  readonly opened: Promise<void>;
  /**
   * Returns the memory of a chunk for reuse. Calling it is optional: chunks may be retained
   * instead.
   */
  release(piece: Uint8Array): void;
}

export interface SizedByteStream extends ByteStream {
  /** Size of the content in bytes, as a hint. Rejects if the size cannot be determined. */
  readonly length: Promise<number>;
}

export interface ByteStreamParts {
  open(): Promise<AsyncIterable<Uint8Array>>;
  release?(piece: Uint8Array): void;
}

export class LazyByteStream implements ByteStream {
  readonly #parts: ByteStreamParts;
  #opening: Promise<void> | undefined;
  #opened: AsyncIterable<Uint8Array> | undefined;

  constructor(parts: ByteStreamParts) {
    this.#parts = parts;
  }

  get opened(): Promise<void> {
    this.#opening ??= this.#parts.open().then((opened) => {
      this.#opened = opened;
    });
    return this.#opening;
  }

  release(piece: Uint8Array): void {
    this.#parts.release?.(piece);
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return (this.#opened ?? this.#openedFirst())[Symbol.asyncIterator]();
  }

  async *#openedFirst(): AsyncGenerator<Uint8Array, void, undefined> {
    await this.opened;
    yield* this.#opened as AsyncIterable<Uint8Array>;
  }
}

export class SizedLazyByteStream extends LazyByteStream implements SizedByteStream {
  readonly #length: () => Promise<number>;

  constructor({ length, ...parts }: ByteStreamParts & { readonly length: () => Promise<number> }) {
    super(parts);
    this.#length = length;
  }

  get length(): Promise<number> {
    return this.#length();
  }
}

/**
 * Returns a function that calls `make` on its first call, and returns the same promise from then
 * on.
 */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
