/**
 * An object store: whole files by key, as S3 has them. Keys are relative to the prefix that the store was opened with.
 *
 * Every method may be repeated, repeats what may pass by itself, and takes a signal that ends it, its connection included.
 * What does not pass in time is NodeError STORE_UNAVAILABLE; what does not pass by itself (access denied, no such bucket)
 * is a NodeError without a code that says what to do.
 */
import type { Figures } from "./figures.ts";

/** What the store knows of an object without reading it. */
export interface ObjectFacts {
  readonly key: string;
  readonly bytes: number;
  readonly etag: string;
  /** Milliseconds since 1970 by the clock of the store, which is compared with no other. */
  readonly modified: number;
}

/** An open file, of which stretches are read; a `SegmentFile` is one. */
export interface ReadableFile {
  /** Fills the arrays in order; gives the bytes read, fewer than asked for only at the end of the file. */
  read(into: readonly Uint8Array[], at: number): Promise<number>;
}

/** A stretch of an open file. It is read as it is sent, and again when that is repeated: it must not change meanwhile. */
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
  /** SHA-256 of the payload, where it is known; it is computed otherwise, which reads a file once more. */
  readonly sha256?: Uint8Array | undefined;
}

/**
 * `same`: an object with these very bytes is there, which an earlier attempt may have written. `different`: one with other
 * bytes, which is left as it is.
 */
export type PutNewResult = "written" | "same" | "different";

/** Bytes from `start` on, `length` of them. */
export interface ByteRange {
  readonly start: number;
  readonly length: number;
}

export interface ReadOptions extends Interruptible {
  /** Filled from its beginning, and what is returned is a view of it; a new array otherwise. */
  readonly into?: Uint8Array | undefined;
  /** Called as bytes come, with how many of them are there, from the first on. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
}

export interface ObjectStream {
  /** Of the whole object. */
  readonly facts: ObjectFacts;
  /** Exactly what was asked for. It goes on where it was when the connection breaks; leaving the loop ends the request. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface StreamOptions extends Interruptible {
  /** The whole object otherwise. */
  readonly range?: ByteRange | undefined;
}

export interface ListOptions extends Interruptible {
  /** Begins behind this key. */
  readonly after?: string | undefined;
}

export interface ObjectStore {
  /** Where it is, for messages and logs: `s3://bucket/prefix`. */
  readonly name: string;
  readonly figures: Figures;
  /** Writes an object under a key that no object has. Durable when it resolves. */
  putNew(key: string, payload: Payload, options?: PutOptions): Promise<PutNewResult>;
  /** Writes an object, in the place of one that may be there. Durable when it resolves. */
  put(key: string, payload: Payload, options?: PutOptions): Promise<void>;
  /** The bytes of a range; undefined when there is no such object. @throws NodeError when the object is shorter */
  read(key: string, range: ByteRange, options?: ReadOptions): Promise<Uint8Array | undefined>;
  /** For what is too large for memory; undefined when there is no such object. */
  stream(key: string, options?: StreamOptions): Promise<ObjectStream | undefined>;
  /** Undefined when there is no such object. */
  head(key: string, options?: Interruptible): Promise<ObjectFacts | undefined>;
  /** Those that are not there are gone already. */
  delete(keys: readonly string[], options?: Interruptible): Promise<void>;
  /** In order of their keys' bytes, in pages. Slow, and each page costs money: for sweeps alone. */
  list(prefix: string, options?: ListOptions): AsyncGenerator<readonly ObjectFacts[], void, undefined>;
  /**
   * Removes the parts of large objects that were never completed, and gives the number of those. An upload that is under way fails,
   * or begins anew: `isOver` says by the key that nobody is at it.
   */
  abandonUploads(isOver: (key: string) => boolean, options?: Interruptible): Promise<number>;
  /**
   * Asks for something small, within seconds; for more where answers came too slowly before. @throws NodeError STORE_UNAVAILABLE
   */
  probe(): Promise<void>;
  /** Whether it can be read and written, and honours conditional writes. @throws NodeError that says what is wrong */
  check(options?: Interruptible): Promise<void>;
  /** Ends what is under way. */
  close(): Promise<void>;
}
