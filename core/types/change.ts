/** The record of a change of a running server. */
import type { ConfigPlan } from "./plan.ts";

/** The record of a change, as it is announced and written to the audit file. */
export interface Change {
  /** Unique, also across restarts; later ones sort after earlier ones. */
  readonly id: string;
  /** When it was asked for: ISO 8601. */
  readonly at: string;
  /** Who asked: `admin socket`, `signal SIGTERM`, `module NAME`, `program` for code that embeds the host. */
  readonly by: string;
  /** The module through which it was asked for, where `by` is somebody else. */
  readonly via?: string;
  /** What was asked for: `reload http_notes`. */
  readonly what: string;
  /** What was done, in order; of one that is in force but not over, what was done until then. */
  readonly steps: readonly ChangeStep[];
  /** Of a change of the configuration: what differed. */
  readonly plan?: ConfigPlan;
  /** `refused`: nothing was tried; `failed`: it was tried, and what was there before goes on. */
  readonly result: "done" | "refused" | "failed";
  readonly error?: ChangeError;
}

/** Which records of the audit file are looked for; all of it must fit. */
export interface AuditFilter {
  /** Records that stand before the one with this id. */
  readonly before?: string | undefined;
  /** Records on a page, up to 500; default 50. */
  readonly limit?: number | undefined;
  /** A part of who asked. */
  readonly by?: string | undefined;
  /** A part of what was asked for. */
  readonly what?: string | undefined;
  readonly result?: Change["result"] | undefined;
}

/** A page of the audit file, the newest first. */
export interface AuditPage {
  readonly changes: readonly Change[];
  /** Given as `before`, it gives the next page; undefined on the last one. */
  readonly next?: string | undefined;
}

/** A part of a change that was done. */
export interface ChangeStep {
  readonly what: string;
  /** Milliseconds since the change began. */
  readonly ms: number;
}

/** Why a change has come to nothing. */
export interface ChangeError {
  /** A code of `docs/reference/errors.md`; none for other errors. */
  readonly code?: string;
  readonly message: string;
  /** The place in a module's own code, where the error tells one. */
  readonly place?: SourcePlace;
}

/** A line of a file. */
export interface SourcePlace {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** The line itself, where the file can be read. */
  readonly text?: string;
}
