/**
 * The log that hosts of one shared store have in common: every change to the metadata and to the blocks, in one order.
 * Each host applies it to copies on its own disk, and reads from those.
 */

/** Number of a commit, from 1 on; 0 is before the first. */
export type Position = number;

/** `<session>-<number>`, in base 36: the session that wrote it, and how many it had written before. */
export type SegmentId = string;

/** A CAR file in the object store, with its index beside it. Neither is ever changed. */
export interface Segment {
  readonly id: SegmentId;
  /** Bytes of the CAR file. */
  readonly bytes: number;
  /** Blocks in it. */
  readonly blocks: number;
  /** The index, where it is small: hosts need not fetch it. */
  readonly index?: Uint8Array | undefined;
}

/** One change. Hosts apply the entries of a commit together. */
export type Entry =
  /** Undefined deletes a key. */
  | { readonly kind: "metadata"; readonly changes: readonly (readonly [key: string, value: Uint8Array | undefined])[] }
  /** Its blocks can be read from now on. */
  | { readonly kind: "segment"; readonly segment: Segment }
  /** What was of use in `segments` is in `by`. The old objects can be read until their grace is over. */
  | { readonly kind: "replaced"; readonly segments: readonly SegmentId[]; readonly by: readonly Segment[] }
  /**
   * These blocks, in segments of up to `upTo`, are about to be removed: a host treats them as not stored, and tells with its
   * acknowledgement which of them calls under way there refer to.
   */
  | { readonly kind: "condemned"; readonly epoch: number; readonly upTo: Position; readonly list: BlockList }
  /** The condemned blocks of this epoch are gone, except those rescued, which are stored as before. */
  | { readonly kind: "removed"; readonly epoch: number; readonly rescued: BlockList };

/** CIDs as bytes, sorted; in the log itself, or as an object of the object store where they are many. */
export type BlockList = { readonly cids: readonly Uint8Array[] } | { readonly object: string; readonly count: number };

export interface Commit {
  readonly position: Position;
  /** The session that wrote it; 0 in a snapshot. */
  readonly session: number;
  readonly entries: readonly Entry[];
}

/** Keeps a copy of what the log says, or of a part. */
export interface Applier {
  /** What the copy has on the disk; 0 for nothing. */
  readonly position: Position;
  /**
   * Called once for each commit, in order, this host's own as well. It must not wait: what takes time goes on behind it. Reads of
   * the copy see the commit when this returns, or wait for it.
   */
  apply(commit: Commit): void;
  /**
   * The log no longer has what comes after `position`: everything before is forgotten, and commits follow that lead to the present
   * state, with their own positions.
   */
  reset(): void;
}

export interface SharedLog {
  /** Number of this opening; another one after the session was lost and joined anew. */
  readonly session: number;
  /** The last commit that was applied here. */
  readonly applied: Position;
  /** Adds an applier; before the log is opened. */
  follow(applier: Applier): void;
  /** Everything that was committed anywhere before the call is applied when it resolves. @throws NodeError STORE_UNAVAILABLE */
  refresh(): Promise<void>;
  /**
   * Writes one commit, durable and applied when it resolves. `run` is called when everything before is applied, and gives
   * the entries; none for no commit. It is synchronous, and may be called several times: only the last one counts. Calls
   * that come while a commit is being written share the next one; when one of them throws, the others are not concerned.
   *
   * @throws what `run` throws; NodeError STORE_UNAVAILABLE, SESSION_LOST, both without effect
   */
  commit<T>(run: (head: Position) => { readonly entries: readonly Entry[]; readonly result: T }): Promise<T>;
  /** Sessions that are alive by the database's clock, this one among them, in order. */
  sessions(): Promise<readonly number[]>;
  close(): Promise<void>;
}
