/** The store for everything that is not a block: pins, the root of MFS, records. Ordered keys, transactions. */

/** Bounds of a range, by the bytes of the keys (UTF-8). */
export interface KeyRange {
  readonly prefix?: string;
  /** Exclusive lower bound, for continuing a listing. */
  readonly after?: string;
  readonly limit?: number;
}

/** What a page has at most. */
export interface KeyPage extends KeyRange {
  readonly limit: number;
}

export interface MetadataReader {
  get(key: string): Uint8Array | undefined;
  has(key: string): boolean;
  /** In order of the keys. */
  range(range?: KeyRange): Iterable<readonly [key: string, value: Uint8Array]>;
}

export interface MetadataWriter extends MetadataReader {
  put(key: string, value: Uint8Array): void;
  delete(key: string): boolean;
}

/**
 * Reads see committed data. A transaction sees its own writes, runs alone and is atomic: durable when the promise
 * resolves, without effect when it rejects.
 */
export interface MetadataStore {
  get(key: string): Promise<Uint8Array | undefined>;
  has(key: string): Promise<boolean>;
  /** A snapshot, streamed in constant memory. Readers that may take long use `pagedRange`. */
  range(range?: KeyRange): AsyncIterable<readonly [key: string, value: Uint8Array]>;
  /** The first keys of a range at once, for lists that are read page by page. */
  keys(page: KeyPage): Promise<readonly string[]>;
  /**
   * `run` is synchronous. Where several hosts share the store it may be called again, on another state: only what the last call
   * wrote and returned counts. So it changes nothing but the writer: no counter, no list, nothing that it has captured.
   */
  transaction<T>(run: (writer: MetadataWriter) => T): Promise<T>;
  /** Puts `value` (undefined deletes) if the key has the value `expected` (undefined: none); tells whether it did. */
  compareAndSet(key: string, expected: Uint8Array | undefined, value: Uint8Array | undefined): Promise<boolean>;
  close(): Promise<void>;
}
