/** The interface of all block stores. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "./buffer_pool.ts";

/** Maximum bytes of blocks that a store reads from the disk at the same time; other reads wait. */
export const MAX_READING_BYTES = 16 * 1024 * 1024;

export interface Block {
  readonly cid: CID;
  /** The store retains this array until it is written, so it must not be changed afterwards. */
  readonly bytes: Uint8Array;
  /**
   * Called when the store no longer needs `bytes` and they may be overwritten. A store may retain
   * them and never call it.
   */
  readonly release?: (() => void) | undefined;
  /**
   * Another location of these bytes. A store of references refers to it; other stores ignore it.
   */
  readonly at?: ExternalLocation;
}

export interface PutOptions {
  /**
   * Whether the blocks are needed to maintain stored content. They may use space that new content
   * may not use.
   */
  readonly upkeep?: boolean | undefined;
  /**
   * Called for each block that was not stored before in this form. The CID may be a view of a
   * larger array.
   */
  readonly onNew?: ((cid: CID) => void) | undefined;
}

/** A range of bytes. */
export interface Span {
  readonly from: number;
  /** Offset after the last byte. The block may end earlier. */
  readonly to: number;
}

/** A location of bytes outside of all stores. */
export interface ExternalLocation {
  /** Absolute path of a file, or a URL. */
  readonly path: string;
  /** Offset of the first byte. */
  readonly offset: number;
}

/** A file in a snapshot of a store. */
export interface SnapshotFile {
  /** Path below the folder of the store, with slashes. */
  readonly name: string;
  /** Number of bytes that belong to the snapshot; the file may be longer. */
  readonly length: number;
  /** While this text is the same, the content is the same. */
  readonly state: string;
  /** Whether the file is only ever appended to. */
  readonly isGrowing: boolean;
  /** Returns the content from this offset on. */
  read(from: number): AsyncIterable<Uint8Array>;
}

/**
 * A snapshot of the files of a store. They can be read until `release`, even if the store removes
 * them in the meantime.
 */
export interface StoreSnapshot {
  readonly files: Iterable<SnapshotFile> | AsyncIterable<SnapshotFile>;
  readonly bytes: number;
  release(): Promise<void>;
}

/**
 * Stores blocks by CID. Version and codec belong to the key, as in go-ipfs: the same bytes may be
 * stored under several forms of one multihash, and each form counts, although most stores have the
 * bytes only once.
 *
 * A store does not handle identity CIDs, allowed hash functions, blocks under other versions and
 * codecs, or the network; `BlockService` does. Every method rejects with STORE_CLOSED after
 * `close`, with STORE_FULL when the disk is full (reads still work), and with BLOCK_CORRUPT
 * when the bytes on the disk do not match the CID.
 */
export interface BlockStore {
  /** Whether `get` checks every block that it reads from the disk against its CID. */
  readonly verifies: boolean;
  /**
   * Whether all forms of a multihash are one block, which is stored, found and deleted together,
   * and listed as its raw CID of version 1. By default, each form is separate.
   */
  readonly joinsForms?: boolean;
  /**
   * Returns the bytes, which the caller must not change; undefined when this form is not stored.
   *
   * With `buffers`, the bytes may be in one of its buffers. The caller releases them to the pool
   * when they are no longer used, whether they are from the pool or not. The bytes may also come
   * from a read within the last second, unless the pool has `bypassesCache`.
   */
  get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined>;
  /**
   * Like `get`, but returns no promise for a small block that is at hand, and for one that is not
   * stored. Optional.
   */
  getSoon?(cid: CID, buffers?: BufferPool): Uint8Array | Promise<Uint8Array> | undefined;
  /** Like `get` for a range of the bytes, which a store may read alone. Optional. */
  getPart?(cid: CID, span: Span, buffers?: BufferPool): Promise<Uint8Array | undefined>;
  /**
   * Like `get` for each CID, for readers of many small blocks. Returns the bytes of blocks that are
   * probably in memory, synchronously. Returns undefined for others; `get` reports more about them.
   * Optional.
   */
  peek?(cids: readonly CID[], buffers: BufferPool): readonly (Uint8Array | undefined)[];
  /**
   * While this number is the same, it is the same store and no block was removed from it. Undefined
   * for a store from which others can remove blocks.
   */
  readonly removals?: number;
  /** Whether this form is stored. */
  has(cid: CID): Promise<boolean>;
  /**
   * Returns the stored forms of the multihash of a CID in any order. A store may only know those
   * with common codecs.
   */
  forms(cid: CID): Promise<readonly CID[]>;
  /** Returns the length in bytes; undefined when this form is not stored. */
  size(cid: CID): Promise<number | undefined>;
  /**
   * Stores blocks. Blocks that are already stored cost nothing. They are visible to every read when
   * the promise resolves, and durable after `sync`. It waits while too many bytes in memory wait
   * for the disk: this is the backpressure.
   */
  put(blocks: readonly Block[], options?: PutOptions): Promise<void>;
  /** Resolves when everything that was put before is durable. Concurrent calls share one flush. */
  sync(): Promise<void>;
  /**
   * Removes forms; durable when the promise resolves. Resolves with true for each form that was
   * stored.
   */
  delete(cids: readonly CID[]): Promise<boolean[]>;
  /**
   * Yields every stored form once, in any order. Forms that are added or removed in the meantime
   * may be missing or included.
   */
  keys(): AsyncIterable<CID>;
  /**
   * Like `keys`, but in the order in which they are read fastest; a form may be yielded twice.
   * Undefined for a store without such an order.
   */
  keysToRead?(): AsyncIterable<CID>;
  /**
   * Like `has`, as far as this host knows without asking others. Undefined for a store that does
   * not share blocks.
   */
  knows?(cid: CID): boolean;
  /**
   * Returns the file or object with a stored form, for people. Undefined when this host knows none.
   */
  pathOf?(cid: CID): string | undefined;
  /**
   * Returns the number of stored forms, and the number of bytes that the store takes on the disk.
   */
  stat(): Promise<{ readonly blocks: number; readonly bytes: number }>;
  /** Frees the disk space of deleted blocks. Reads and writes continue in the meantime. */
  compact(signal?: AbortSignal): Promise<void>;
  /**
   * Reads a stored form without trusting any cache. Resolves with whether its bytes match the CID;
   * undefined when it is not stored.
   */
  check(cid: CID): Promise<boolean | undefined>;
  /** Like `check`, for a caller that checks all blocks in the order of `keysToRead`. Optional. */
  checker?(): BlockStore["check"];
  /**
   * Takes a snapshot of the files of the store. It contains everything that was put before this
   * call, and nothing that was deleted after it is missing. The snapshot is taken at the time of
   * the call, not when the promise resolves. It may contain blocks that are put later. Undefined
   * for a store without files.
   */
  takeSnapshot?(): Promise<StoreSnapshot>;
  close(): Promise<void>;
}
