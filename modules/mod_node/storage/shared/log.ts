/**
 * The log of hosts that share a store: all changes of metadata and blocks in one order. Each host
 * applies the log to copies on its own disk and reads from these copies.
 */

/** Number of a commit, starting with 1; 0 is the position before the first commit. */
export type Position = number;

/**
 * `<session>-<number>` in base 36: the session that wrote the segment, and the number of segments
 * that it had written before.
 */
export type SegmentId = string;

/** A CAR file in the object store and its index next to it. Neither ever changes. */
export interface Segment {
  readonly id: SegmentId;
  /** Bytes of the CAR file. */
  readonly bytes: number;
  /** Number of blocks in it. */
  readonly blocks: number;
  /** The index when it is small, so that hosts need not fetch it. */
  readonly index?: Uint8Array | undefined;
}

/** One change. Hosts apply the entries of a commit together. */
export type Entry =
  /** A value of undefined deletes the key. */
  | { readonly kind: "metadata"; readonly changes: readonly (readonly [key: string, value: Uint8Array | undefined])[] }
  /** The blocks of this segment can be read from now on. */
  | { readonly kind: "segment"; readonly segment: Segment }
  /**
   * The live blocks of `segments` are now in `by`. The old objects stay readable until their grace
   * period ends.
   */
  | { readonly kind: "replaced"; readonly segments: readonly SegmentId[]; readonly by: readonly Segment[] }
  /**
   * These blocks, in segments up to `upTo`, are about to be removed. Each session acknowledges the
   * entry once no call of its host can begin to refer to one of them. `gc/blocks.ts` explains how
   * the blocks are treated until the decision.
   */
  | { readonly kind: "condemned"; readonly epoch: number; readonly upTo: Position; readonly list: BlockList }
  /**
   * The acknowledgement of this session, with the condemned blocks that its running calls refer to.
   */
  | { readonly kind: "acknowledged"; readonly epoch: number; readonly rescued: BlockList }
  /**
   * The condemned blocks of this epoch are gone, except for the rescued ones, which are stored as
   * before.
   */
  | { readonly kind: "removed"; readonly epoch: number; readonly rescued: BlockList };

/**
 * A list of sorted CIDs as bytes. A short list is in the log itself; a long one is an object of the
 * object store.
 */
export type BlockList =
  | { readonly cids: readonly Uint8Array[] }
  | {
      readonly object: string;
      readonly count: number;
      /** SHA-256 of the object in hex. Older programs wrote no sum. */
      readonly sum?: string;
    };

export interface Commit {
  readonly position: Position;
  /** The session that wrote the commit; 0 in a snapshot. */
  readonly session: number;
  /**
   * Distinguishes this commit from another one at the same position, which is possible after
   * commits were lost. In a snapshot only the last commit has an id.
   */
  readonly id?: string | undefined;
  readonly entries: readonly Entry[];
}

/** The last commit that a copy contains. */
export interface Reached {
  readonly position: Position;
  /** The id of the commit at this position. */
  readonly commit?: string | undefined;
}

/** Maintains a copy of the log's content or of a part of it. */
export interface Applier {
  /**
   * The position of the copy on the disk; 0 for an empty copy. Undefined for an applier without a
   * copy, which follows from the position of the others. Read once, when the applier begins to
   * follow the log.
   */
  readonly position: Position | undefined;
  /**
   * The id of the commit at this position. A copy without an id, or of another history, starts
   * again from an empty state.
   */
  readonly commit?: string | undefined;
  /**
   * Called once for each commit in order, including the commits of this host. Must not wait: work
   * that takes time continues in the background. Reads of the copy see the commit when this call
   * returns, or wait for it.
   */
  apply(commit: Commit): void;
  /**
   * The log no longer has the commits after `position`. The copy drops its content and receives
   * commits that lead to the current state, with their own positions. Reads that call `refresh`
   * first never see an intermediate state.
   */
  reset(): void;
  /**
   * Called after each read of the log, when everything that was committed before the read has been
   * applied.
   */
  caughtUp?(): void;
  /**
   * Resolves when all applied changes are on the disk. Awaited between the parts of a large change,
   * so that memory stays bounded.
   */
  settled?(): Promise<void>;
}

/** A lock that at most one of the hosts that share the store has at a time. */
export interface StoreLock {
  readonly name: string;
  /** Greater than the fence of every previous owner of the lock. */
  readonly fence: number;
  /**
   * Aborted when the loss of the lock is known. The lock may be lost before this host notices, so
   * pass it to `commit`.
   */
  readonly signal: AbortSignal;
}

/** The entries that a call of `commit` writes, and its result. */
export interface Draft<T> {
  readonly entries: readonly Entry[];
  readonly result: T;
}

export interface SharedLog {
  /** Identifies the log. A copy of another log is useless and starts again at 0. */
  readonly store: string;
  /** Number of the current session. A lost session is replaced by one with another number. */
  readonly session: number;
  /** The position of the last commit that was applied on this host. */
  readonly applied: Position;
  /** Adds an applier. Must be called before the first `refresh` or `commit`. */
  follow(applier: Applier): void;
  /**
   * Sets the function that runs when the session was lost. It calls `join` once no call is running
   * that began in the old session, because garbage collection did not ask such calls which blocks
   * they refer to. Until `join` resolves, commits fail with SESSION_LOST. By default, the session
   * is joined again immediately.
   */
  onSessionLost(rejoin: (join: () => Promise<void>) => Promise<void>): void;
  /**
   * Resolves when everything that any host committed before the call is applied.
   * @throws NodeError STORE_UNAVAILABLE
   */
  refresh(): Promise<void>;
  /**
   * Writes one commit, which is durable and applied when the promise resolves. `run` is called when
   * all earlier commits are applied, and returns the entries; without entries, nothing is written.
   * It is synchronous and may be called several times: only the last call counts. Calls that arrive
   * while a commit is being written share the next one. They do not see each other's entries, and
   * an error in one of them does not affect the others.
   *
   * With `lock`, nothing is written once another host may have the lock.
   *
   * @throws errors of `run`; NodeError SESSION_LOST or LOCK_LOST, both without effect;
   * STORE_UNAVAILABLE or STORE_READ_ONLY, without effect unless the text says that the response to
   * the commit was lost
   */
  commit<T>(run: (head: Position) => Draft<T>, lock?: StoreLock): Promise<T>;
  /**
   * Calls `run` while no other host has the lock of that name. Resolves with undefined when another
   * host has it.
   * @throws errors of `run`; NodeError STORE_UNAVAILABLE
   */
  withLock<T>(name: string, run: (lock: StoreLock) => Promise<T>): Promise<{ readonly result: T } | undefined>;
  /**
   * Resolves when the database accepts writes.
   * @throws NodeError STORE_READ_ONLY, STORE_UNAVAILABLE
   */
  tryWriting(): Promise<void>;
  /**
   * Returns the sessions that are alive by the clock of the database, in order, including this one.
   * @throws NodeError STORE_UNAVAILABLE
   */
  sessions(): Promise<readonly number[]>;
  /** Returns the name of the host of a session, for people. */
  hostOf(session: number): Promise<string>;
  /**
   * Returns ids of segments that were replaced at least `graceMs` ago by the clock of the database
   * and whose objects may still exist. Also returns keys of lists that no entry has named for that
   * long.
   */
  deletableObjects(graceMs: number): Promise<readonly string[]>;
  /** Records that the objects of these ids were deleted. */
  markDeleted(ids: readonly string[]): Promise<void>;
  /**
   * Returns the keys of block lists that entries name and that a host may still read.
   * @throws NodeError STORE_UNAVAILABLE
   */
  lists(): Promise<readonly string[]>;
  close(): Promise<void>;
}
