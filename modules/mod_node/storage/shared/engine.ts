/** The database interface that `LogClient` needs to store a log. */
import type { Commit, Entry, Position, SharedLog, StoreLock } from "./log.ts";

/** A part of the log. */
export interface Page {
  /** Commits in order. The first one directly follows the requested position. */
  readonly commits: readonly Commit[];
  /** Whether there are more commits after the last one. */
  readonly more: boolean;
  /**
   * Whether the log no longer has the requested commits; `snapshot` then leads to the current
   * state.
   */
  readonly behind: boolean;
}

export interface Append {
  /** The entries become the commit after this position, or nothing is written. */
  readonly after: Position;
  readonly entries: readonly Entry[];
  /** The commit is refused when one of these locks went to another host. */
  readonly locks: readonly StoreLock[];
  /**
   * Whether other hosts should wait a moment if this host is too late once more. Set when it was
   * too late several times.
   */
  readonly wantsTurn: boolean;
}

export type Appended =
  /** The commit is durable. */
  | { readonly position: Position; readonly id?: string }
  /** `after` is no longer the last commit. `missed` has the commits since then. */
  | { readonly missed: Page }
  /** Names of locks that went to other hosts. */
  | { readonly lost: readonly string[] };

export interface LogEngine {
  readonly store: SharedLog["store"];
  /** Number of the current session; 0 while it is lost. */
  readonly session: number;
  /**
   * Reports that a copy on the disk has this commit. When the log has another commit at that
   * position, `read` says `behind`.
   */
  expectCommit(position: Position, id: string): void;
  /**
   * Returns commits after `after`.
   * @throws NodeError STORE_UNAVAILABLE
   */
  read(after: Position): Promise<Page>;
  /** @throws NodeError SESSION_LOST, STORE_UNAVAILABLE */
  append(append: Append): Promise<Appended>;
  /**
   * Yields commits that lead to the current state, in order: one for each position that still
   * matters. The last one has the position of the whole snapshot.
   */
  snapshot(): AsyncIterable<readonly Commit[]>;
  /** Joins the store with a new session after the previous one was lost. */
  join(): Promise<void>;
  withLock: SharedLog["withLock"];
  tryWriting: SharedLog["tryWriting"];
  sessions: SharedLog["sessions"];
  hostOf: SharedLog["hostOf"];
  doomed: SharedLog["deletableObjects"];
  lists: SharedLog["lists"];
  buried: SharedLog["markDeleted"];
  close(): Promise<void>;
}

/** Events of a log engine. */
export interface EngineEvents {
  /** Called when somebody may have written a commit. */
  readonly onNews: () => void;
  /** Called when the database says that the session has ended. */
  readonly onSessionLost: () => void;
  /**
   * Called when the log lacks commits that the copies have. They must start again with a snapshot,
   * because the log may have other commits at the same positions.
   */
  readonly onHistoryLost: () => void;
}
