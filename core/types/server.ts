/** What operates a running server: `module.server`, and the record of each change. */
import type { ConfigPlan } from "./plan.ts";
import type { ListeningPort, ModuleState } from "./state.ts";

/**
 * `module.server`: the running server, for modules that operate it. Changes are made one after the other, whoever asks:
 * modules, commands, signals. Each is announced as `server-changed` when it is over, and is a line of the audit file.
 *
 * A change is answered with its record once it is in force, or has come to nothing: it never rejects, `result` tells.
 * "In force" means that the new instance serves, or that the module gets no more requests; what leaves may still be
 * finishing its requests then. So a handler may change its own module and await it: its answer goes out, and then the
 * instance that gave it goes.
 */
export interface Server {
  /** How the server is, now. */
  status(): ServerStatus;
  /** State of every module, of failed ones too. */
  modules(): readonly ModuleState[];
  /** Loads a module by name or path: on all hosts, unless one is named. */
  load(name: string, options?: ChangeOptions): Promise<Change>;
  /** Unloads a module, after those that depend on it. */
  unload(name: string, options?: ChangeOptions): Promise<Change>;
  /** Loads a module anew beside itself and exchanges both in one step; when that fails, the old one goes on. */
  reload(name: string, options?: ChangeOptions): Promise<Change>;
  /**
   * What a changed configuration makes of the server: its file and the environment are read again, and nothing is changed.
   * Rejects with what is wrong with the new configuration.
   */
  plan(): Promise<ConfigPlan>;
  /** Puts a changed configuration in force, as a whole or not at all; its record has the plan. */
  apply(options?: Pick<ChangeOptions, "by">): Promise<Change>;
  /** Begins to stop the server, as a signal does: requests in flight are finished first, the caller's too. */
  stop(options?: StopOptions): Promise<Change>;
  /** The latest changes, the oldest first; the audit file has those before them. */
  changes(): readonly Change[];
}

/** Where a change is made, and for whom. */
export interface ChangeOptions {
  /** One of `hosts`; default: all of them. */
  readonly host?: string | undefined;
  /** Who asks, for the record: `socket uid 1000`, `token NAME`. Default: the module. */
  readonly by?: string | undefined;
}

/** How the server is stopped, and for whom. */
export interface StopOptions {
  /** Seconds that all of it may take; default: the option `stop_timeout`. */
  readonly timeout?: number | undefined;
  /** Who asks, for the record. Default: the module. */
  readonly by?: string | undefined;
}

/** The record of a change, as it is announced and written to the audit file. */
export interface Change {
  /** Unique, also across restarts; later ones sort after earlier ones. */
  readonly id: string;
  /** When it was asked for: ISO 8601. */
  readonly at: string;
  /** Who asked: `socket uid 1000`, `signal SIGTERM`, `module NAME`, `program` for code that embeds the host. */
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

/** How the server is: what `modhost status` shows. */
export interface ServerStatus {
  readonly version: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly started: string;
  readonly phase: "new" | "starting" | "running" | "stopping" | "stopped";
  /** The config file; undefined without one. */
  readonly config: string | undefined;
  readonly data_path: string;
  readonly addresses: readonly ListeningPort[];
  readonly modules: readonly ModuleState[];
  /** Open connections that came in through ports. */
  readonly connections: number;
  /** Requests that are being answered, the oldest first, such as `GET /path (3 s)`; empty without the module http. */
  readonly requests: readonly string[];
  /** What an operator should look at. */
  readonly warnings: readonly string[];
}
