/**
 * Maximum size of an object in bytes. Pieces of files have about four mebibytes, and snapshots are
 * short too.
 */
export const MAX_OBJECT_BYTES = 64 * 1024 * 1024;

/** Stores a repository as named objects of at most a few megabytes. */
export interface Backend {
  /** The name shown to people. */
  readonly name: string;
  /** Returns undefined when the object does not exist. */
  read(name: string, signal?: AbortSignal): Promise<Buffer | undefined>;
  /**
   * Replaces the object in one step: readers see either the old or the whole new content. It is
   * durable after `sync`.
   */
  write(name: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>;
  /** Like `write`, but returns false when an object of that name already exists. */
  create(name: string, bytes: Uint8Array): Promise<boolean>;
  /** Resolves when everything that was written is durable. */
  sync(): Promise<void>;
  remove(name: string): Promise<void>;
  /** Yields, in any order, the names that begin with a prefix. The prefix ends in a slash. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<string>;
  /** Removes the remains of interrupted writes. No other writer may be active. */
  tidy(): Promise<void>;
}
