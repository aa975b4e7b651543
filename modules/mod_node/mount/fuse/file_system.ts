/** The interface of a file system for `serve`. */
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { Attributes, DirectoryEntry, Errno, NewAttributes, RequestLimits } from "./wire.ts";

/** A failure that is passed to the calling program unchanged. */
export class FuseError extends Error {
  override readonly name = "FuseError";
  readonly errno: Errno;

  constructor(errno: Errno, options?: ErrorOptions) {
    super(errno, options);
    this.errno = errno;
  }
}

/** The bytes of a read. */
export interface ReadPieces {
  readonly pieces: readonly Uint8Array[];
  /** Called when the pieces are no longer used. */
  readonly release?: (() => void) | undefined;
}

/** An open directory. */
export interface OpenListing {
  /**
   * Yields the entries from this number on; `withNodes` adds their nodes if these are available.
   */
  from(number: number, withNodes: boolean, signal: AbortSignal): AsyncIterable<DirectoryEntry>;
  close(): void;
}

/**
 * Nodes are identified by the id in their attributes; the id of the root is `rootId`. Every method
 * throws FuseError.
 */
export interface FileSystem {
  /** Capabilities in addition to the common ones. */
  readonly capabilities: number;
  readonly limits: RequestLimits;
  /** Seconds for which the kernel may cache nodes and entries. */
  readonly seconds: number;
  /** The `openFlags` of open directories. */
  readonly directoryFlags: number;
  /** The pool of buffers for requests and written bytes. */
  readonly buffers: BufferPool;
  /** Finds an entry. Its node stays in use until it was forgotten as often as it was returned. */
  lookup(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  forget(id: number, times: number): void;
  attributes(id: number, signal: AbortSignal): Promise<Attributes>;
  readlink(id: number, signal: AbortSignal): Promise<Uint8Array>;
  read(id: number, offset: number, length: number, signal: AbortSignal): Promise<ReadPieces>;
  list(id: number): Promise<OpenListing>;
  /** Returns the number of free bytes. */
  free(): Promise<number>;
  /** Undefined for a read-only file system. */
  readonly changes?: Changes;
  /** Called after the last request. */
  close(): Promise<void>;
}

export interface Changes {
  create(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  makeDirectory(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  makeSymlink(parent: number, name: string, target: string, signal: AbortSignal): Promise<Attributes>;
  remove(parent: number, name: string, kind: "file" | "directory", signal: AbortSignal): Promise<void>;
  rename(
    from: EntryName,
    to: EntryName,
    options: { readonly replace: boolean; readonly signal: AbortSignal },
  ): Promise<void>;
  resize(id: number, size: number, signal: AbortSignal): Promise<void>;
  /** Ignores modes and times that are not stored. */
  setModeAndTime(id: number, given: Pick<NewAttributes, "mode" | "mtime">, signal: AbortSignal): Promise<void>;
  /** Writes bytes from `buffers`. The file system owns them from then on and releases them. */
  write(id: number, offset: number, bytes: Uint8Array): Promise<void>;
  /** Resolves when written content is part of the tree, and durable if requested. */
  settle(id: number, options: { readonly durable: boolean }): Promise<void>;
}

export interface EntryName {
  readonly parent: number;
  readonly name: string;
}
