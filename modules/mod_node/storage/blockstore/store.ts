/** The seam under everything that is kept: what a block store must do, whatever engine is behind it. */
import type { CID } from "multiformats/cid";
import type { BufferPool } from "./buffer_pool.ts";

export interface Block {
  readonly cid: CID;
  /** The store keeps this very array until it is written: whoever put it does not change it any more. */
  readonly bytes: Uint8Array;
  /** Called when the store needs `bytes` no longer: they may be written over. A store may keep them, and never call. */
  readonly release?: (() => void) | undefined;
  /** Where else these bytes stand: a store that keeps references refers to that place, others take no notice. */
  readonly at?: ExternalLocation;
}

/** Where bytes stand outside of every store. */
export interface ExternalLocation {
  /** Absolute path of a file, or a URL. */
  readonly path: string;
  /** Of the first byte. */
  readonly offset: number;
}

/**
 * Keeps blocks by CID. Version and codec belong to the key, as in the reference: the same bytes may be stored under
 * several forms of one multihash, and then each counts, though an engine holds the bytes once.
 *
 * A store knows nothing of identity CIDs, of allowed hash functions, of twin forms or of the network: `Blocks` does.
 * Every method rejects with STORE_CLOSED after `close`, with STORE_FULL when the disk takes no more (reads go on), and
 * with BLOCK_CORRUPT when bytes on disk cannot be those of the CID.
 */
export interface BlockStore {
  /** Every block that `get` reads from the disk is checked against its CID. */
  readonly verifies: boolean;
  /**
   * The bytes, not to be changed by the caller; undefined when this form is not stored.
   *
   * `buffers` are for blocks that are handed on: the bytes may be in one of them, and the caller gives them back there,
   * whether they are or not, when nobody needs them any more (or never); or they may be those that were read and checked
   * within the last second.
   */
  get(cid: CID, buffers?: BufferPool): Promise<Uint8Array | undefined>;
  /** True when this form is stored. */
  has(cid: CID): Promise<boolean>;
  /** Length in bytes; undefined when this form is not stored. */
  size(cid: CID): Promise<number | undefined>;
  /**
   * Stores blocks; those stored already cost nothing. Visible to every read when it resolves, durable after `sync`.
   * It waits while more is on its way to the disk than the store wants to hold in memory: that is the backpressure.
   */
  put(blocks: readonly Block[]): Promise<void>;
  /** Resolves when all that was put before is on the disk. Calls that come together share one flush. */
  sync(): Promise<void>;
  /** Takes forms away; durable when it resolves. True for each that was stored. */
  delete(cids: readonly CID[]): Promise<boolean[]>;
  /** Every stored form once, in no order; what comes or goes meanwhile may be missing or be there. */
  keys(): AsyncIterable<CID>;
  /** Forms stored, and bytes that the store takes on the disk. */
  stat(): Promise<{ readonly blocks: number; readonly bytes: number }>;
  /** Gives the room of deleted blocks back to the disk, while reads and writes go on. */
  compact(signal?: AbortSignal): Promise<void>;
  /** Reads a stored form without any trust and says whether its bytes are the block's; undefined when not stored. */
  check(cid: CID): Promise<boolean | undefined>;
  close(): Promise<void>;
}
