/** What a block store must do, whatever engine is behind it. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "./buffer_pool.ts";

/** Bytes of blocks that a store reads from the disk at a time; other reads wait for these. */
export const MAX_READING_BYTES = 16 * 1024 * 1024;

export interface Block {
  readonly cid: CID;
  /** The store keeps this very array until it is written: it must not be changed afterwards. */
  readonly bytes: Uint8Array;
  /**
   * Called when the store no longer needs `bytes` and they may be overwritten. A store may keep them and never call it.
   */
  readonly release?: (() => void) | undefined;
  /** Where else these bytes are: a store that keeps references refers to that location, others ignore it. */
  readonly at?: ExternalLocation;
}

export interface PutOptions {
  /** The blocks are needed to keep what is stored already: they may use room that new content may not. */
  readonly upkeep?: boolean | undefined;
  /** Called for each block that was not stored before in this form. The CID may be a view of something larger. */
  readonly onNew?: ((cid: CID) => void) | undefined;
}

/** Bytes from an offset up to another. */
export interface Span {
  readonly from: number;
  /** The first byte after them; there may be fewer. */
  readonly to: number;
}

/** Where bytes are outside of every store. */
export interface ExternalLocation {
  /** Absolute path of a file, or a URL. */
  readonly path: string;
  /** Of the first byte. */
  readonly offset: number;
}

/** A file of a store. */
export interface HeldFile {
  /** Below the folder of the store, with slashes. */
  readonly name: string;
  /** Of what belongs to the moment; the file may have more. */
  readonly length: number;
  /** While it is the same, so is that content. */
  readonly state: string;
  /** It is only ever appended to. */
  readonly isGrowing: boolean;
  /** Its content from this offset on. */
  read(from: number): AsyncIterable<Uint8Array>;
}

/** The files of a store at one moment. They can be read until `release`, though the store may remove them meanwhile. */
export interface HeldFiles {
  readonly files: Iterable<HeldFile> | AsyncIterable<HeldFile>;
  readonly bytes: number;
  release(): Promise<void>;
}

/**
 * Keeps blocks by CID. Version and codec belong to the key, as in the reference: the same bytes may be stored under
 * several forms of one multihash, and each form counts, although an engine holds the bytes once.
 *
 * A store knows nothing of identity CIDs, allowed hash functions, that a block is found under other versions and codecs, or the network:
 * `BlockService` does. Every method rejects with STORE_CLOSED after `close`, with STORE_FULL when the disk takes no
 * more (reads still work), and with BLOCK_CORRUPT when the bytes on disk cannot be those of the CID.
 */
export interface BlockStore {
  /** Every block that `get` reads from the disk is checked against its CID. */
  readonly verifies: boolean;
  /**
   * All forms of a multihash are one block: stored, found and deleted together, and listed as its raw CID of version 1. By default
   * each form counts.
   */
  readonly joinsForms?: boolean;
  /**
   * The bytes, which the caller must not change; undefined when this form is not stored.
   *
   * With `buffers` the bytes may be in one of its buffers: the caller releases them there when they are no longer used,
   * whether they are from the pool or not. They may also be bytes that were read and checked within the last second,
   * unless the pool `readsAnew`.
   */
  get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined>;
  /** As `get`, without a promise for a small block that is at hand, and for one that is not stored. A store may have no such thing. */
  getSoon?(cid: CID, buffers?: BufferPool): Uint8Array | Promise<Uint8Array> | undefined;
  /** As `get`, of some of the bytes, which a store may read alone. A store may have no such thing. */
  getPart?(cid: CID, span: Span, buffers?: BufferPool): Promise<Uint8Array | undefined>;
  /**
   * As `get` of each, for readers of many small blocks: of those that are probably in memory the bytes, now. Undefined for any other,
   * which `get` tells more about. A store may have no such thing.
   */
  peek?(cids: readonly CID[], buffers: BufferPool): readonly (Uint8Array | undefined)[];
  /** While it is the same, nothing has left the store, nor is it another one. A store from which others remove has no such number. */
  readonly removals?: number;
  /** True when this form is stored. */
  has(cid: CID): Promise<boolean>;
  /** The stored forms of the multihash of a CID, in any order; a store may know those of the usual codecs alone. */
  forms(cid: CID): Promise<readonly CID[]>;
  /** Length in bytes; undefined when this form is not stored. */
  size(cid: CID): Promise<number | undefined>;
  /**
   * Stores blocks; blocks that are stored already cost nothing. Visible to every read when it resolves, durable after
   * `sync`. It waits while more is on its way to the disk than the store wants to hold in memory: that is the
   * backpressure.
   */
  put(blocks: readonly Block[], options?: PutOptions): Promise<void>;
  /** Resolves when everything that was put before is durable. Concurrent calls share one flush. */
  sync(): Promise<void>;
  /** Removes forms; durable when it resolves. True for each that was stored. */
  delete(cids: readonly CID[]): Promise<boolean[]>;
  /** Every stored form once, in any order; forms that come or go meanwhile may be missing or included. */
  keys(): AsyncIterable<CID>;
  /** As `keys`, in the order in which they are read fastest, and a form may come twice. A store may have no such order. */
  keysToRead?(): AsyncIterable<CID>;
  /** As `has`, as far as this host knows: nobody else is asked. A store without others has no such thing. */
  knows?(cid: CID): boolean;
  /** Number of stored forms, and bytes that the store takes on the disk. */
  stat(): Promise<{ readonly blocks: number; readonly bytes: number }>;
  /** Returns the space of deleted blocks to the disk, while reads and writes go on. */
  compact(signal?: AbortSignal): Promise<void>;
  /**
   * Reads a stored form without trusting any cache, and tells whether its bytes fit the CID; undefined when it is not
   * stored.
   */
  check(cid: CID): Promise<boolean | undefined>;
  /**
   * The files that are a store with all that was put before this call, and from which nothing is missing that was deleted
   * after it: the moment is that of the call itself, not that at which it resolves. What is put later may be in it. A store
   * without files has none.
   */
  hold?(): Promise<HeldFiles>;
  close(): Promise<void>;
}
