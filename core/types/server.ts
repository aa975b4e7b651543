/** What operates a running server: `module.server`, and the record of each change. */
import type { CertificateState } from "./certificate.ts";
import type { AuditFilter, AuditPage, Change } from "./change.ts";
import type { ServerConfig } from "./config.ts";
import type { AnnouncedEvents } from "./events.ts";
import type { ConfigPlan } from "./plan.ts";
import type { ListeningPort, ModuleState } from "./state.ts";
import type { ServerTokens } from "./tokens.ts";

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
  /** The certificates that are served, with their ends. */
  certificates(): readonly CertificateState[];
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
  /** Shows and edits the configuration. */
  readonly config: ServerConfig;
  /** Begins to stop the server, as a signal does: requests in flight are finished first, the caller's too. */
  stop(options?: StopOptions): Promise<Change>;
  /** Opens the files that logs are written to again, for whoever has moved them away. */
  reopen_logs(options?: Pick<ChangeOptions, "by">): Promise<Change>;
  /**
   * Lets another process go on in place of this one: it is started, loads and checks everything, and gets the ports and what
   * modules have saved once this one has finished its requests. When any of that fails, this one goes on. In force means
   * that the other process is ready and this one stops.
   */
  hand_over(successor?: Successor, options?: Pick<ChangeOptions, "by">): Promise<Change>;
  /**
   * Does what changes a module's own matters, and records it as a change of the server: who, what, and what came of it.
   * It waits for no other change, and ends as the work does.
   */
  record<T>(what: string, work: () => Promise<T>, options?: Pick<ChangeOptions, "by">): Promise<T>;
  /** Makes and revokes tokens: changes like the others, but for their answer. */
  readonly tokens: ServerTokens;
  /** The latest changes, the oldest first; the audit file has those before them. */
  changes(): readonly Change[];
  /** Changes from the audit file, those of former processes too. */
  audit(filter?: AuditFilter): Promise<AuditPage>;
  /**
   * Hears an event of the server, until the function that this gives is called or the module is unloaded. Unlike a hook
   * it costs nothing while nobody follows.
   */
  follow<E extends keyof AnnouncedEvents>(event: E, hear: (data: AnnouncedEvents[E]) => void): () => void;
  /** Hears the lines of the log, as they are written; not those that are written while a line is being heard. */
  follow_log(hear: (line: LogLine) => void): () => void;
  /** The latest lines of the log, up to 1,000, the oldest first. */
  log(): readonly LogLine[];
}

/** A line of the log, without the values of secret options. */
export interface LogLine {
  /** Counts the lines that were written, from 1: what is heard goes on where `log()` ends. */
  readonly n: number;
  readonly level: "debug" | "info" | "warn" | "error";
  /** ISO 8601. */
  readonly time: string;
  /** The module that wrote it; undefined for the host itself. */
  readonly module?: string;
  /** The number of the process that wrote it, of a server of several; undefined for the first. */
  readonly worker?: number;
  /** The module's host, unless it is of the whole server. */
  readonly host?: string;
  readonly msg: string;
}

/** Where a change is made, and for whom. */
export interface ChangeOptions {
  /** One of `hosts`; default: all of them. */
  readonly host?: string | undefined;
  /** Who asks, for the record: `admin socket`, `token NAME`. Default: the module. */
  readonly by?: string | undefined;
}

/** The process that goes on in place of this one. */
export interface Successor {
  /** The executable and its arguments; default: those of this process. */
  readonly command?: readonly string[] | undefined;
  /** Where it starts; default: where this process did. */
  readonly folder?: string | undefined;
  /** Seconds for which requests that last are waited for, while everything is served; default 60. */
  readonly wait?: number | undefined;
}

/** How the server is stopped, and for whom. */
export interface StopOptions {
  /** Seconds that all of it may take; default: the option `stop_timeout`. */
  readonly timeout?: number | undefined;
  /** Who asks, for the record. Default: the module. */
  readonly by?: string | undefined;
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
  /** Those that are served over TLS. */
  readonly certificates: readonly CertificateState[];
  /** Open connections that came in through ports. */
  readonly connections: number;
  /** Requests that are being answered, the oldest first, such as `GET /path (3 s)`; empty without the module http. */
  readonly requests: readonly string[];
  /** What an operator should look at. */
  readonly warnings: readonly string[];
  /** Of a server of several processes: the others, as they were a second ago. Their connections and requests are among those above. */
  readonly processes?: readonly ServerProcess[];
}

/** One of several processes that serve, beside the first. */
export interface ServerProcess {
  /** From 2. */
  readonly number: number;
  readonly pid: number;
  readonly connections: number;
}
