/** What a file system must implement for `serve`. */
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { Attributes, DirectoryEntry, Errno, Limits, NewAttributes } from "./wire.ts";

/** A failure that the calling program gets as it is. */
export class FuseError extends Error {
  override readonly name = "FuseError";
  readonly errno: Errno;

  constructor(errno: Errno, options?: ErrorOptions) {
    super(errno, options);
    this.errno = errno;
  }
}

/** Bytes of a read. */
export interface Pieces {
  readonly pieces: readonly Uint8Array[];
  /** Called when they are no longer used. */
  readonly release?: (() => void) | undefined;
}

/** An open directory. */
export interface Listing {
  /** Entries from this number on. `withNodes`: with their nodes, as far as these can be had. */
  from(number: number, withNodes: boolean, signal: AbortSignal): AsyncIterable<DirectoryEntry>;
  close(): void;
}

/**
 * Nodes are identified by the id in their attributes; the root's is `rootId`. Every method throws
 * FuseError.
 */
export interface FileSystem {
  /** `capabilities` beyond the common ones. */
  readonly capabilities: number;
  readonly limits: Limits;
  /** Seconds for which the kernel may cache nodes and entries. */
  readonly seconds: number;
  /** `openFlags` for open directories. */
  readonly directoryFlags: number;
  /** The pool for requests and written bytes. */
  readonly buffers: BufferPool;
  /** Finds an entry. Its node stays in use until it was forgotten as often as it was given out. */
  lookup(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  forget(id: number, times: number): void;
  attributes(id: number, signal: AbortSignal): Promise<Attributes>;
  readlink(id: number, signal: AbortSignal): Promise<Uint8Array>;
  read(id: number, offset: number, length: number, signal: AbortSignal): Promise<Pieces>;
  list(id: number): Promise<Listing>;
  /** Free bytes. */
  free(): Promise<number>;
  /** Missing in a read-only file system. */
  readonly changes?: Changes;
  /** Called when there are no more requests. */
  close(): Promise<void>;
}

export interface Changes {
  create(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  makeDirectory(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  makeSymlink(parent: number, name: string, target: string, signal: AbortSignal): Promise<Attributes>;
  remove(parent: number, name: string, kind: "file" | "directory", signal: AbortSignal): Promise<void>;
  rename(from: Entry, to: Entry, options: { readonly replace: boolean; readonly signal: AbortSignal }): Promise<void>;
  resize(id: number, size: number, signal: AbortSignal): Promise<void>;
  /** What is not stored is left out. */
  setModeAndTime(id: number, given: Pick<NewAttributes, "mode" | "mtime">, signal: AbortSignal): Promise<void>;
  /** The bytes, from `buffers`, belong to the file system from then on: it releases them. */
  write(id: number, offset: number, bytes: Uint8Array): Promise<void>;
  /** What was written is in the tree when it resolves; durable if asked for. */
  settle(id: number, options: { readonly durable: boolean }): Promise<void>;
}

export interface Entry {
  readonly parent: number;
  readonly name: string;
}
