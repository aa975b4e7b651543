/** Bytes that are read when somebody asks for them. */

/** Nothing is opened before one of its members is used; it is read once. */
export interface ByteStream extends AsyncIterable<Uint8Array> {
  /** Resolves when the first bytes can be read. Rejects with what keeps them from it. */
  readonly opened: Promise<void>;
  /** Takes a piece back that is not needed any more: its memory is used again. A piece that is kept need not be given back. */
  release(piece: Uint8Array): void;
}

export interface SizedByteStream extends ByteStream {
  /** Bytes of content: a hint. Rejects when that cannot be found out. */
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

/** Made when it is asked for, once. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
