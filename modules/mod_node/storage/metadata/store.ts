/** The seam under all that is not a block: pins, the namespace root, records. Ordered keys, transactions. */

/** Bounds of a range, by the bytes of the keys (UTF-8). */
export interface KeyRange {
  readonly prefix?: string;
  /** Exclusive lower bound: where a listing goes on. */
  readonly after?: string;
  readonly limit?: number;
}

export interface MetadataReader {
  get(key: string): Uint8Array | undefined;
  has(key: string): boolean;
  /** In order of the keys, each once. */
  range(range?: KeyRange): Iterable<readonly [key: string, value: Uint8Array]>;
}

export interface MetadataWriter extends MetadataReader {
  put(key: string, value: Uint8Array): void;
  delete(key: string): boolean;
}

/**
 * Reads are of what was committed. A transaction sees its own writes, runs alone, and is whole: when the promise
 * resolves all of it is on the disk, when it rejects nothing of it happened. `run` is synchronous.
 */
export interface MetadataStore {
  get(key: string): Promise<Uint8Array | undefined>;
  has(key: string): Promise<boolean>;
  /**
   * A view of one moment, streamed: a million keys take no memory to speak of. Whoever may take long to read it uses
   * `listed`.
   */
  range(range?: KeyRange): AsyncIterable<readonly [key: string, value: Uint8Array]>;
  transaction<T>(run: (writer: MetadataWriter) => T): Promise<T>;
  /** Puts `value` (undefined deletes) if the key holds `expected` (undefined: nothing); tells whether it did. */
  compareAndSet(key: string, expected: Uint8Array | undefined, value: Uint8Array | undefined): Promise<boolean>;
  close(): Promise<void>;
}
