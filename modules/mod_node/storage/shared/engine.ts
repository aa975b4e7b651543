/** Where a log is kept: what `LogClient` needs of a database. */
import type { Commit, Entry, HeldLock, Position, SharedLog } from "./log.ts";

/** A part of the log. */
export interface Page {
  /** In order, the first one right behind what was asked for. */
  readonly commits: readonly Commit[];
  /** There are more behind the last one. */
  readonly more: boolean;
  /** The log no longer has what was asked for: `snapshot` leads to the present. */
  readonly behind: boolean;
}

export interface Append {
  /** The entries become the commit behind this one, or nothing is written. */
  readonly after: Position;
  readonly entries: readonly Entry[];
  /** Refused when one of them went to another host. */
  readonly locks: readonly HeldLock[];
  /** This host was too late several times: when it is once more, others wait a moment for it. */
  readonly wantsTurn: boolean;
}

export type Appended =
  /** Durable. */
  | { readonly position: Position; readonly id?: string }
  /** `after` is no longer the last one: what has come since. */
  | { readonly missed: Page }
  /** Names of locks that went to other hosts. */
  | { readonly lost: readonly string[] };

export interface LogEngine {
  readonly store: SharedLog["store"];
  /** 0 while the last one is lost. */
  readonly session: number;
  /** A copy on the disk has this commit: where there is another in its place, the log is `behind`. */
  know(position: Position, id: string): void;
  /** Commits after `after`. @throws NodeError STORE_UNAVAILABLE */
  read(after: Position): Promise<Page>;
  /** @throws NodeError SESSION_LOST, STORE_UNAVAILABLE */
  append(append: Append): Promise<Appended>;
  /**
   * Commits that lead to the present state, one for each position that still matters, in order; the last one has the position of
   * the whole.
   */
  snapshot(): AsyncIterable<readonly Commit[]>;
  /** A new session, for one that was lost. */
  join(): Promise<void>;
  withLock: SharedLog["withLock"];
  sessions: SharedLog["sessions"];
  hostOf: SharedLog["hostOf"];
  doomed: SharedLog["doomed"];
  lists: SharedLog["lists"];
  buried: SharedLog["buried"];
  close(): Promise<void>;
}

/** What an engine tells of. */
export interface EngineEvents {
  /** Somebody may have written a commit. */
  readonly onNews: () => void;
  /** The session is over, as the database says. */
  readonly onSessionLost: () => void;
}
