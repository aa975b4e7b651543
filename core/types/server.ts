/** The interface for operating a running server: `module.server`, and the record of each change. */
import type { CertificateState } from "./certificate.ts";
import type { AuditFilter, AuditPage, Change } from "./change.ts";
import type { ServerConfig, ServerInstalled } from "./config.ts";
import type { AnnouncedEvents } from "./events.ts";
import type { ConfigPlan } from "./plan.ts";
import type { ListeningPort, ModuleState } from "./state.ts";
import type { ServerTokens } from "./tokens.ts";

/**
 * `module.server`: the running server, for modules that operate it. Changes run one after another,
 * whether modules, commands or signals request them. Each is announced as `server-changed` when it
 * has ended, and is written to the audit file. A method that makes a change resolves to the
 * change's record once it is in force or has failed. It never rejects: `result` says how it ended.
 * "In force" means that the new instance serves, or that the module gets no more requests; the old
 * instance may still be finishing its requests then. A handler may therefore change its own module
 * and await that: its response is sent before its instance is unloaded.
 */
export interface Server {
  /** Returns the current status of the server. */
  status(): ServerStatus;
  /** Returns the state of every module, including failed ones. */
  modules(): readonly ModuleState[];
  /** Returns the certificates in use, with their expiry dates. */
  certificates(): readonly CertificateState[];
  /** Loads a module by name or path: on all hosts, unless `host` is given. */
  load(name: string, options?: ChangeOptions): Promise<Change>;
  /** Unloads a module, after the modules that depend on it. */
  unload(name: string, options?: ChangeOptions): Promise<Change>;
  /**
   * Loads a second instance of a module next to the running one and swaps them in one step; if that
   * fails, the old instance keeps running.
   */
  reload(name: string, options?: ChangeOptions): Promise<Change>;
  /**
   * Reports how a changed configuration would affect the server: reads the file and the environment
   * again, and changes nothing. Rejects with the problems of the new configuration.
   */
  plan(): Promise<ConfigPlan>;
  /** Applies a changed configuration, completely or not at all; its record has the plan. */
  apply(options?: Pick<ChangeOptions, "by">): Promise<Change>;
  /** Inspects and edits the configuration. */
  readonly config: ServerConfig;
  /** Inspects and edits which modules are installed. */
  readonly installed: ServerInstalled;
  /**
   * Starts to stop the server, as a signal does: open requests are finished first, including the
   * caller's.
   */
  stop(options?: StopOptions): Promise<Change>;
  /** Reopens the log files, after they have been moved away. */
  reopen_logs(options?: Pick<ChangeOptions, "by">): Promise<Change>;
  /**
   * Hands the server over to another process: the new process is started, loads and checks
   * everything, and gets the ports and the saved state of modules once this one has finished its
   * requests. If any step fails, this process keeps serving. "In force" means that the new process
   * is ready and this one stops.
   */
  hand_over(next?: NextServerProcess, options?: Pick<ChangeOptions, "by">): Promise<Change>;
  /**
   * Does work that changes the module's own data, and records it as a change of the server: who,
   * what, and the result. It waits for no other change, and settles as the work does.
   */
  record<T>(what: string, work: () => Promise<T>, options?: Pick<ChangeOptions, "by">): Promise<T>;
  /**
   * Creates and revokes tokens. These are changes as well, but the methods return the token instead
   * of a record.
   */
  readonly tokens: ServerTokens;
  /** Returns the latest changes, the oldest first; the audit file has earlier ones. */
  changes(): readonly Change[];
  /** Returns changes from the audit file, including those of previous processes. */
  audit(filter?: AuditFilter): Promise<AuditPage>;
  /**
   * Listens to an event of the server until the returned function is called or the module is
   * unloaded. Unlike a hook it costs nothing while nobody listens.
   */
  follow<E extends keyof AnnouncedEvents>(event: E, listener: (data: AnnouncedEvents[E]) => void): () => void;
  /**
   * Listens to the lines of the log as they are written, except those written while a listener
   * runs.
   */
  follow_log(listener: (line: LogLine) => void): () => void;
  /** Returns the latest lines of the log, up to 1,000, the oldest first. */
  log(): readonly LogLine[];
}

/** A line of the log, without the values of secret options. */
export interface LogLine {
  /** Counts the lines, starting at 1: a follower continues where `log()` ends. */
  readonly n: number;
  readonly level: "debug" | "info" | "warn" | "error";
  /** ISO 8601. */
  readonly time: string;
  /** The module that wrote it; undefined for the host itself. */
  readonly module?: string;
  /** The number of the process that wrote it, on a server with several; undefined for the first. */
  readonly worker?: number;
  /** The module's host, unless the module is global. */
  readonly host?: string;
  readonly msg: string;
  /** Fields of the writer. */
  readonly [field: string]: unknown;
}

/** On which host a change is made, and who requests it. */
export interface ChangeOptions {
  /** A host from `hosts`; default: all of them. */
  readonly host?: string | undefined;
  /** The requester, for the record: `admin socket`, `token NAME`. Default: the module. */
  readonly by?: string | undefined;
}

/** The process that takes over from this one. */
export interface NextServerProcess {
  /** The executable and its arguments; default: those of this process. */
  readonly command?: readonly string[] | undefined;
  /** The working folder in which it starts; default: the one in which this process started. */
  readonly folder?: string | undefined;
  /** Seconds to wait for open requests, while everything is still served; default 60. */
  readonly wait?: number | undefined;
}

/** How the server stops, and who requests it. */
export interface StopOptions {
  /** Seconds that the whole stop may take; default: the option `stop_timeout`. */
  readonly timeout?: number | undefined;
  /** The requester, for the record. Default: the module. */
  readonly by?: string | undefined;
}

/** The status of the server, as `modhost status` shows it. */
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
  /** The certificates of the names that are served over TLS. */
  readonly certificates: readonly CertificateState[];
  /** Number of open connections that came in through ports. */
  readonly connections: number;
  /** Open requests, the oldest first, such as `GET /path (3 s)`; empty without the module http. */
  readonly requests: readonly string[];
  /** Problems that an operator should look at. */
  readonly warnings: readonly string[];
  /**
   * On a server with several processes: the others, as they were a second ago. Their connections
   * and requests are included above.
   */
  readonly processes?: readonly ServerProcess[];
}

/** A worker process that serves in addition to the first process. */
export interface ServerProcess {
  /** Worker processes are numbered from 2. */
  readonly number: number;
  readonly pid: number;
  readonly connections: number;
}
