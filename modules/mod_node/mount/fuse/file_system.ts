/** What a file system has to be able to do for `serve`. */
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { Attributes, DirectoryEntry, Errno, Limits } from "./wire.ts";

/** A refusal that the calling program is told as it is. */
export class FuseError extends Error {
  override readonly name = "FuseError";
  readonly errno: Errno;

  constructor(errno: Errno, options?: ErrorOptions) {
    super(errno, options);
    this.errno = errno;
  }
}

/** Bytes that are read. */
export interface Pieces {
  readonly pieces: readonly Uint8Array[];
  /** Called when nobody looks at them any more. */
  readonly release?: (() => void) | undefined;
}

/** An open directory. */
export interface Listing {
  /** Entries from the one with this number on. `withNodes`: their nodes are wanted, as far as they can be had. */
  from(number: number, withNodes: boolean, signal: AbortSignal): AsyncIterable<DirectoryEntry>;
  close(): void;
}

/** Nodes are named by the numbers that attributes carry; the root's is `rootId`. Every method throws FuseError. */
export interface FileSystem {
  /** `capabilities`, beyond what all have. */
  readonly capabilities: number;
  readonly limits: Limits;
  /** Seconds for which the kernel may remember what it is told of nodes and entries. */
  readonly seconds: number;
  /** For open directories: `openFlags`. */
  readonly directoryFlags: number;
  /** Memory for what it is asked, and for what is written. */
  readonly buffers: BufferPool;
  /** Finds an entry. The node is in use until it is forgotten as often as it was told. */
  lookup(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  forget(id: number, times: number): void;
  attributes(id: number, signal: AbortSignal): Promise<Attributes>;
  readlink(id: number, signal: AbortSignal): Promise<Uint8Array>;
  read(id: number, offset: number, length: number, signal: AbortSignal): Promise<Pieces>;
  list(id: number): Promise<Listing>;
  /** Bytes that there is room for. */
  free(): Promise<number>;
  /** Missing where nothing can be changed. */
  readonly changes?: Changes;
  /** Nothing is asked any more. */
  close(): Promise<void>;
}

export interface Changes {
  create(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  makeDirectory(parent: number, name: string, signal: AbortSignal): Promise<Attributes>;
  makeSymlink(parent: number, name: string, target: string, signal: AbortSignal): Promise<Attributes>;
  remove(parent: number, name: string, kind: "file" | "directory", signal: AbortSignal): Promise<void>;
  rename(from: Entry, to: Entry, options: { readonly replace: boolean; readonly signal: AbortSignal }): Promise<void>;
  resize(id: number, size: number, signal: AbortSignal): Promise<void>;
  /** The bytes, out of `buffers`, are the file system's own from then on: it gives them back. */
  write(id: number, offset: number, bytes: Uint8Array): Promise<void>;
  /** What was written is in the tree when it resolves; on the disk if `durable`. */
  settle(id: number, options: { readonly durable: boolean }): Promise<void>;
}

export interface Entry {
  readonly parent: number;
  readonly name: string;
}
