/**
 * An object store with whole files by key, as S3 has them. Keys are relative to the prefix that the
 * store was opened with.
 *
 * Every method may be called again after a failure, retries temporary faults itself, and takes a
 * signal that aborts it together with its connection. Temporary faults that last too long become
 * NodeError STORE_UNAVAILABLE. Permanent faults (access denied, no such bucket) become a NodeError
 * without a code whose text says what to do.
 */
import type { MetricsByKind } from "./metrics.ts";

/** Facts about an object that the store knows without reading it. */
export interface ObjectFacts {
  readonly key: string;
  readonly bytes: number;
  readonly etag: string;
  /** Milliseconds since 1970 by the clock of the store. It is not compared with any other clock. */
  readonly modified: number;
}

/** An open file that can be read at any offset, such as a `SegmentFile`. */
export interface ReadableFile {
  /**
   * Fills the arrays in order. Resolves with the number of bytes read, which is smaller than
   * requested only at the end of the file.
   */
  read(into: readonly Uint8Array[], at: number): Promise<number>;
}

/**
 * A range of an open file. It is read while it is sent, and again for a retry, so it must not
 * change in the meantime.
 */
export interface FileStretch {
  readonly file: ReadableFile;
  readonly start: number;
  readonly length: number;
}

export type Payload = Uint8Array | FileStretch;

export interface Interruptible {
  readonly signal?: AbortSignal | undefined;
}

export interface PutOptions extends Interruptible {
  /**
   * SHA-256 of the payload, when it is known. Otherwise it is computed, which reads a file one more
   * time.
   */
  readonly sha256?: Uint8Array | undefined;
}

/**
 * `same`: the object already exists with these bytes, possibly from an earlier attempt.
 * `different`: it exists with other bytes and was not changed.
 */
export type PutNewResult = "written" | "same" | "different";

/** A range of `length` bytes that begins at `start`. */
export interface ByteRange {
  readonly start: number;
  readonly length: number;
}

export interface ReadOptions extends Interruptible {
  /**
   * A buffer to fill from its beginning; the result is then a view of it. Without it, a new array
   * is allocated.
   */
  readonly into?: Uint8Array | undefined;
  /** Called as bytes arrive, with the total number received so far. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
}

export interface ObjectStream {
  /** Facts about the whole object. */
  readonly facts: ObjectFacts;
  /**
   * Exactly the requested bytes. Reading continues at the same offset when the connection breaks.
   * Leaving the loop aborts the request.
   */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface StreamOptions extends Interruptible {
  /** The range to read; by default the whole object. */
  readonly range?: ByteRange | undefined;
}

export interface ListOptions extends Interruptible {
  /** The list begins after this key. */
  readonly after?: string | undefined;
}

export interface ObjectStore {
  /** The address of the store for messages and logs: `s3://bucket/prefix`. */
  readonly name: string;
  readonly metrics: MetricsByKind;
  /** Writes an object unless the key exists. Durable when the promise resolves. */
  putNew(key: string, payload: Payload, options?: PutOptions): Promise<PutNewResult>;
  /** Writes an object, and replaces an existing one. Durable when the promise resolves. */
  put(key: string, payload: Payload, options?: PutOptions): Promise<void>;
  /**
   * Reads the bytes of a range; undefined when the object does not exist.
   * @throws NodeError when the object is shorter
   */
  read(key: string, range: ByteRange, options?: ReadOptions): Promise<Uint8Array | undefined>;
  /**
   * Streams an object that may be too large for memory; undefined when the object does not exist.
   */
  stream(key: string, options?: StreamOptions): Promise<ObjectStream | undefined>;
  /** Returns facts about an object; undefined when it does not exist. */
  head(key: string, options?: Interruptible): Promise<ObjectFacts | undefined>;
  /** Deletes objects. Missing objects are ignored. */
  delete(keys: readonly string[], options?: Interruptible): Promise<void>;
  /**
   * Lists objects in pages, in order of the bytes of their keys. This is slow, and each page costs
   * money, so only sweeps use it.
   */
  list(prefix: string, options?: ListOptions): AsyncGenerator<readonly ObjectFacts[], void, undefined>;
  /**
   * Removes the parts of large objects that were never completed, and returns the number of those
   * uploads. A running upload fails or starts again, so `isOver` must return true only for keys
   * that nobody is uploading.
   */
  abandonUploads(isOver: (key: string) => boolean, options?: Interruptible): Promise<number>;
  /**
   * Makes a small request, within seconds. After responses that were too slow, it reads more.
   * @throws NodeError STORE_UNAVAILABLE
   */
  probe(): Promise<void>;
  /**
   * Checks that the store can be read and written, and that it honours conditional writes.
   * @throws NodeError that says what is wrong
   */
  check(options?: Interruptible): Promise<void>;
  /** Aborts running requests. */
  close(): Promise<void>;
}
