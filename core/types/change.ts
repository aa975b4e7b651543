/** The record of a change of a running server. */
import type { ConfigPlan } from "./plan.ts";

/** The record of a change, as it is announced and written to the audit file. */
export interface Change {
  /** Unique, also across restarts; later ones sort after earlier ones. */
  readonly id: string;
  /** When the change was requested: ISO 8601. */
  readonly at: string;
  /**
   * The requester: `admin socket`, `signal SIGTERM`, `module NAME`, `program` for code that
   * embeds the host.
   */
  readonly by: string;
  /** The module that passed the request on, if `by` is somebody else. */
  readonly via?: string;
  /** The requested change: `reload http_notes`. */
  readonly what: string;
  /**
   * The steps that were done, in order. A change that is in force but not complete lists the steps
   * so far.
   */
  readonly steps: readonly ChangeStep[];
  /** For a change of the configuration: what differed. */
  readonly plan?: ConfigPlan;
  /**
   * `refused`: nothing was tried. `failed`: it was tried, and the previous state stays in force.
   */
  readonly result: "done" | "refused" | "failed";
  /**
   * Warnings for the operator about a change that is in force: for example apps that have lost
   * their protection.
   */
  readonly warnings?: readonly string[];
  readonly error?: ChangeError;
}

/** Selects records of the audit file; a record must match all fields. */
export interface AuditFilter {
  /** Returns only records that come before the one with this id. */
  readonly before?: string | undefined;
  /** Records on a page, up to 500; default 50. */
  readonly limit?: number | undefined;
  /** Text that `by` must contain. */
  readonly by?: string | undefined;
  /** Text that `what` must contain. */
  readonly what?: string | undefined;
  readonly result?: Change["result"] | undefined;
}

/** A page of the audit file, the newest first. */
export interface AuditPage {
  readonly changes: readonly Change[];
  /** Given as `before`, it returns the next page; undefined on the last page. */
  readonly next?: string | undefined;
}

/** One completed step of a change. */
export interface ChangeStep {
  readonly what: string;
  /** Milliseconds since the change began. */
  readonly ms: number;
}

/** Why a change failed or was refused. */
export interface ChangeError {
  /** A code of `docs/reference/errors.md`; undefined for other errors. */
  readonly code?: string;
  readonly message: string;
  /** The position in the module's own code, if the error has one. */
  readonly place?: SourcePosition;
}

/** A line of a file. */
export interface SourcePosition {
  readonly file: string;
  /** Number of the line, from 1. */
  readonly line: number;
  /** The text of the line, if the file can be read. */
  readonly text?: string;
}
