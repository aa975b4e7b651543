/**
 * The store for all data except blocks: pins, the root of MFS, records. It has ordered keys and
 * transactions.
 */

/** Bounds of a range. Keys are ordered by their bytes in UTF-8. */
export interface KeyRange {
  readonly prefix?: string;
  /** Exclusive lower bound, for continuing a listing. */
  readonly after?: string;
  readonly limit?: number;
}

/** A range with a maximum number of keys. */
export interface KeyPage extends KeyRange {
  readonly limit: number;
}

export interface MetadataReader {
  get(key: string): Uint8Array | undefined;
  has(key: string): boolean;
  /** Returns entries in order of their keys. */
  range(range?: KeyRange): Iterable<readonly [key: string, value: Uint8Array]>;
}

export interface MetadataWriter extends MetadataReader {
  put(key: string, value: Uint8Array): void;
  delete(key: string): boolean;
}

/**
 * Stores key-value entries. Reads see committed data. A transaction sees its own writes, runs alone
 * and is atomic: it is durable when the promise resolves, and has no effect when it rejects.
 */
export interface MetadataStore {
  get(key: string): Promise<Uint8Array | undefined>;
  has(key: string): Promise<boolean>;
  /** Streams a snapshot in constant memory. Readers that may take long use `pagedRange`. */
  range(range?: KeyRange): AsyncIterable<readonly [key: string, value: Uint8Array]>;
  /** Resolves with the first keys of a range, for lists that are read page by page. */
  keys(page: KeyPage): Promise<readonly string[]>;
  /**
   * Runs a transaction. `run` is synchronous. When several hosts share the store, `run` may be
   * called again with another state; only the writes and the result of the last call count. So
   * `run` must change nothing but the writer: no counter, no list, no captured variable.
   */
  transaction<T>(run: (writer: MetadataWriter) => T): Promise<T>;
  /**
   * Sets a key to `value`, or deletes it when `value` is undefined, if its current value is
   * `expected` (undefined: the key does not exist). Resolves with whether it did.
   */
  compareAndSet(key: string, expected: Uint8Array | undefined, value: Uint8Array | undefined): Promise<boolean>;
  close(): Promise<void>;
}
