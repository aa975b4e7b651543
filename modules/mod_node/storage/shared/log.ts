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
   * These blocks, in segments of up to `upTo`, are about to be removed. Each session acknowledges it once nothing there can begin to
   * refer to one of them: `gc/blocks.ts` says how they are treated until the decision.
   */
  | { readonly kind: "condemned"; readonly epoch: number; readonly upTo: Position; readonly list: BlockList }
  /** This session's acknowledgement, with the condemned blocks that calls under way there refer to. */
  | { readonly kind: "acknowledged"; readonly epoch: number; readonly rescued: BlockList }
  /** The condemned blocks of this epoch are gone, except those rescued, which are stored as before. */
  | { readonly kind: "removed"; readonly epoch: number; readonly rescued: BlockList };

/** CIDs as bytes, sorted; in the log itself, or as an object of the object store where they are many. */
export type BlockList =
  | { readonly cids: readonly Uint8Array[] }
  | {
      readonly object: string;
      readonly count: number;
      /** SHA-256 of the object, in hex; older programs wrote none. */
      readonly sum?: string;
    };

export interface Commit {
  readonly position: Position;
  /** The session that wrote it; 0 in a snapshot. */
  readonly session: number;
  /** Tells it from another one at its position, where commits were lost; in a snapshot only the last one has it. */
  readonly id?: string | undefined;
  readonly entries: readonly Entry[];
}

/** How far a copy has the log. */
export interface Reached {
  readonly position: Position;
  /** The id of the commit there. */
  readonly commit?: string | undefined;
}

/** Keeps a copy of what the log says, or of a part. */
export interface Applier {
  /**
   * What the copy has on the disk; 0 for nothing. Undefined for one that keeps nothing, and is told what the others are. Read
   * once, when the log begins to be followed.
   */
  readonly position: Position | undefined;
  /** The id of the commit there: a copy of which it is not known, or of another history, begins anew. */
  readonly commit?: string | undefined;
  /**
   * Called once for each commit, in order, this host's own as well. It must not wait: what takes time goes on behind it. Reads of
   * the copy see the commit when this returns, or wait for it.
   */
  apply(commit: Commit): void;
  /**
   * The log no longer has what comes after `position`: everything before is forgotten, and commits follow that lead to the present
   * state, with their own positions. Reads that call `refresh` first see nothing of the way there.
   */
  reset(): void;
  /** Called after each look at the log: everything was applied that had been committed before it. */
  caughtUp?(): void;
  /** Resolves when what was applied is on the disk: between the parts of a large change, so that memory stays bounded. */
  settled?(): Promise<void>;
}

/** A lock that one host has at a time, of all that share the store. */
export interface HeldLock {
  readonly name: string;
  /** Greater than that of everybody who had it before. */
  readonly fence: number;
  /** Aborted when the lock is known to be lost. Until then it may be lost without anybody knowing here: give it to `commit`. */
  readonly signal: AbortSignal;
}

/** What a call of `commit` writes, and what it answers. */
export interface Draft<T> {
  readonly entries: readonly Entry[];
  readonly result: T;
}

export interface SharedLog {
  /** Tells one log from another: a copy of another one is of no use, and begins at 0. */
  readonly store: string;
  /** Number of this opening; another one after the session was lost and joined anew. */
  readonly session: number;
  /** The last commit that was applied here. */
  readonly applied: Position;
  /** Adds an applier; before the first `refresh` or `commit`. */
  follow(applier: Applier): void;
  /**
   * `rejoin` is called when the session was lost, to call `join` once no call is under way that began in the old one: until it
   * resolves commits fail with SESSION_LOST. Garbage collection did not ask those calls what they refer to. By default the session
   * is joined anew at once.
   */
  onSessionLost(rejoin: (join: () => Promise<void>) => Promise<void>): void;
  /** Everything that was committed anywhere before the call is applied when it resolves. @throws NodeError STORE_UNAVAILABLE */
  refresh(): Promise<void>;
  /**
   * Writes one commit, durable and applied when it resolves. `run` is called when everything before is applied, and gives
   * the entries; none for no commit. It is synchronous, and may be called several times: only the last one counts. Calls
   * that come while a commit is being written share the next one, and do not see each other's entries; when one of them throws,
   * the others are not concerned.
   *
   * With `lock`, nothing is written once another host may have it.
   *
   * @throws what `run` throws; NodeError SESSION_LOST, LOCK_LOST, both without effect; STORE_UNAVAILABLE, STORE_READ_ONLY: without
   * effect, unless the text says that the answer to the commit was lost
   */
  commit<T>(run: (head: Position) => Draft<T>, lock?: HeldLock): Promise<T>;
  /**
   * Calls `run` while no other host has the lock of that name. Undefined when one has it. @throws what `run` throws; NodeError
   * STORE_UNAVAILABLE
   */
  withLock<T>(name: string, run: (lock: HeldLock) => Promise<T>): Promise<{ readonly result: T } | undefined>;
  /** Sessions that are alive by the database's clock, this one among them, in order. @throws NodeError STORE_UNAVAILABLE */
  sessions(): Promise<readonly number[]>;
  /** What the host of a session is called, for people. */
  hostOf(session: number): Promise<string>;
  /**
   * Segments that were replaced so many milliseconds ago, by the database's clock, and whose objects may be there; and keys of lists
   * that no entry has named any more for so long.
   */
  doomed(graceMs: number): Promise<readonly string[]>;
  /** The objects of these are gone. */
  buried(ids: readonly string[]): Promise<void>;
  /** Keys of the lists of blocks that entries name, those that a host may still come to read. @throws NodeError STORE_UNAVAILABLE */
  lists(): Promise<readonly string[]>;
  close(): Promise<void>;
}
