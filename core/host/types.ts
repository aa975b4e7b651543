/** The public interface of a host and its options. */
import type { Socket } from "node:net";
import type { Config } from "../config/index.ts";
import type { StartEntry } from "../http/routing/start_entries.ts";
import type { InlineModule } from "../inline_modules.ts";
import type { OutsideNetwork } from "../isolation/network/broker.ts";
import type { Clock } from "../module/clock.ts";
import type { SavedState } from "../module/saved.ts";
import type { Progress } from "../operations/change.ts";
import type { PermissionLedger } from "../permissions/index.ts";
import type { InheritedSocket, PausedPort } from "../ports/inherited.ts";
import type { SharedPort, SharedPorts } from "../ports/shared.ts";
import type {
  Change,
  ConfigPlan,
  ListeningPort,
  ModuleLog,
  ModuleState,
  NextServerProcess,
  ServerStatus,
  StickyBy,
} from "../types.ts";
import type { LogSettings } from "../util/log.ts";

/**
 * Prepares the next process; resolves when it is ready, and calls `host.handOver` then.
 * @throws {ModhostError} NOT_HANDED_OVER: nothing has changed
 */
export type PrepareNextProcess = (wanted: NextServerProcess, progress: Progress) => Promise<void>;

/** The ports and states that a host leaves to the next one. */
export interface Handed {
  /** The open ports; new connections wait until they are accepted again. */
  readonly ports: readonly PausedPort[];
  readonly states: readonly SavedState[];
}

export interface HostOptions {
  /**
   * The whole configuration: no file is read, unless `configPath` names one, whose values these
   * override.
   */
  readonly config?: Readonly<Record<string, unknown>> | Config;
  /** The config file; default: searched from `cwd`. */
  readonly configPath?: string | undefined;
  /** False: without `configPath` no file is read, not even the embedded default. Default true. */
  readonly search?: boolean;
  /**
   * The folder from which relative paths of `configPath` and `modules` are resolved. Default: the
   * current folder.
   */
  readonly cwd?: string;
  /** Contains the variables MODHOST_<OPTION>; default: the environment of the process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly modules?: readonly InlineModule[];
  /** False: everything is loaded and no port is opened. Default true. */
  readonly listen?: boolean;
  /**
   * Listening sockets that the process was started with, such as those of systemd, or ports of a
   * previous host.
   */
  readonly sockets?: readonly InheritedSocket[];
  /** States that modules of a previous host have saved, for `module.restore`. */
  readonly states?: readonly SavedState[];
  /**
   * Prepares a process that will take over from this host; without it, `module.server.hand_over` is
   * refused.
   */
  readonly prepareNext?: PrepareNextProcess;
  /** False: no certificate is read or created, and nothing is served over TLS. Default true. */
  readonly tls?: boolean;
  /** Overrides the options log_level and log_format; false: nothing is logged. */
  readonly log?: LogSettings | false;
  /**
   * Turns on watching of module files and the config file: a module is reloaded when one of its
   * files is saved. It is called with the result of each reload. When the reload of an app has
   * failed, local browsers that navigate to the app get a page with the failure and its source
   * line. Modules that come with the host, and installed packages, are not watched.
   */
  readonly watch?: (reload: Change) => void;
  /**
   * The clock for `module.add_timer` and `module.now`, and for nothing else; default: the system
   * time.
   */
  readonly clock?: Clock;
  /** Set if other processes serve as well. */
  readonly siblings?: Siblings;
  /** Counts the permissions that modules use; default: a new one. Tests read it. */
  readonly ledger?: PermissionLedger;
  /** Answers the connections of sandboxed modules in place of other hosts. Tests set it. */
  readonly outside?: OutsideNetwork | undefined;
}

/** A change that the primary has made, and that the other processes repeat. */
export type ReplicatedChange =
  | { readonly kind: "load" | "unload" | "reload"; readonly name: string; readonly host: string | undefined }
  | { readonly kind: "apply" | "reopen" };

/** The state of another process of the server. */
export interface SiblingState {
  /** The number of the process, starting at 1. */
  readonly number: number;
  readonly pid: number;
  readonly connections: number;
  /** Open requests, one line each. */
  readonly requests: readonly string[];
  /** Modules that are not loaded there. */
  readonly failed: readonly string[];
  /** Seconds of CPU time so far. */
  readonly cpu: number;
  /** Memory of the process (resident set) in bytes. */
  readonly memory: number;
}

/** The connection between the host of one process and the other processes of its server. */
export interface Siblings {
  /** In a secondary: whether only the primary runs the module. */
  readonly isElsewhere?: (name: string) => boolean;
  /**
   * In a secondary: the ports of the primary. The secondary opens none, orders no certificates and
   * records no changes.
   */
  readonly sharedPorts?: SharedPorts;
  /** In the primary: called when its ports or its modules may have changed. */
  changed?(): void;
  /** In the primary: the states of the other processes. */
  states?(): readonly SiblingState[];
  /**
   * In the primary: makes a change in the other processes, one after another. `report` is called
   * with the result of each.
   */
  replicate?(change: ReplicatedChange, report: (what: string) => void): Promise<void>;
}

export type HostPhase = ServerStatus["phase"];

/** A call of module code that would affect the process of all modules. */
export interface ProcessAct {
  /** The call as people read it: `process.exit(1)`. */
  readonly act: string;
  /** Whether the call would end the process. */
  readonly ends: boolean;
  /** An error whose stack shows the caller. */
  readonly called: Error;
}

/** The interface of a host for the other processes of its server. */
export interface SharedFace {
  /** Open ports that they can listen on, too. */
  ports(): SharedPort[];
  /** Names of loaded shared modules, and of all that depend on them. */
  modules(): ReadonlySet<string>;
  /**
   * Names of loaded modules that identify their clients in this way, and of all that depend on
   * them.
   */
  sticky(by: StickyBy): ReadonlySet<string>;
  /** Writes a log line of another process, a JSON object; `from` is its number, or undefined. */
  relayLog(line: string, from: number | undefined): void;
}

/** A module host: loads modules, opens their ports, and unloads and closes both at the end. */
export interface Host extends AsyncDisposable {
  readonly state: HostPhase;
  /** Available after `start` was called. */
  readonly config: Config;
  readonly log: ModuleLog;
  /**
   * Reads the configuration, loads the modules and opens the ports. A module that fails becomes a
   * ModuleState with status "failed"; the others still run.
   * @throws {ModhostError} CONFIG_*, OPTION_INVALID, TLS_INVALID, PORT_*: everything is closed
   * again then
   */
  start(): Promise<void>;
  /**
   * Finishes open requests and unloads everything, within `timeout` seconds (default: the option
   * stop_timeout). With `by`, the stop is recorded like other changes.
   */
  stop(options?: { readonly timeout?: number; readonly by?: string }): Promise<void>;
  /**
   * Works as `stop`, but for another host that takes over: the ports stay open, and new connections
   * wait for it.
   * @throws {ModhostError} CHANGE_REFUSED when the host does not run
   */
  handOver(): Promise<Handed>;
  /**
   * Records that this host took over from another one; with an error, that another process failed
   * to take over. `by` names the process for the record.
   */
  handedOver(by: string, error?: unknown): Promise<void>;
  /**
   * Resolves when the host has stopped, whoever requested it: a module may do so with
   * `module.stop_server()`.
   */
  readonly ended: Promise<void>;
  /** Loads a module by name or path: on all hosts, unless `host` is given. */
  load(name: string, host?: string): Promise<void>;
  /** Finishes the requests of a module and unloads it, after the modules that depend on it. */
  unload(name: string, host?: string): Promise<void>;
  /**
   * Loads a second instance of a module next to the running one and swaps them in one step; if that
   * fails, the old instance keeps running.
   */
  reload(name: string, host?: string): Promise<void>;
  /**
   * Reports how a changed configuration would affect this host: reads the file and the environment
   * again, and changes nothing.
   * @throws {ModhostError} CONFIG_FIXED without a file to read, and what `start` throws for a wrong
   * configuration
   */
  plan(): Promise<ConfigPlan>;
  /**
   * Applies a changed configuration, completely or not at all: modules that it does not affect keep
   * running, with all their connections. `by` is who requests it, for the record.
   * @throws {ModhostError} what `plan` throws; CONFIG_NOT_APPLIED naming the step that failed
   */
  apply(options?: { readonly by?: string }): Promise<ConfigPlan>;
  /**
   * Reopens the log files. A file that cannot be opened is logged, and its log continues in the
   * current file.
   */
  reopenLogs(by?: string): Promise<void>;
  /**
   * Returns the status of the host, as `modhost status` shows it. Available after `start` was
   * called.
   */
  status(): ServerStatus;
  /** Returns the state of every module, including failed ones. */
  modules(): ModuleState[];
  /** Returns what a loaded module's function returned, as `module.depends` does. */
  exports<T = unknown>(name: string, host?: string): T;
  /** The interface for the other processes of a server with several. */
  readonly shared: SharedFace;
  /** Returns the entries that modules want people to open first. */
  startPage(): StartEntry[];
  /** Returns the addresses that the host currently listens on. */
  listening(): ListeningPort[];
  /** Returns the number of open connections that came in through the ports. */
  connections(): number;
  /**
   * Passes a connection to the module that provides a service ("http", "https"), as if it had come
   * in through a port.
   * @throws {ModhostError} SERVICE_MISSING
   */
  connect(service: string, socket: Socket): void;
  /**
   * Returns what the host still has of a module, one line for each thing: the module itself, hooks,
   * items, timers, shared tables, services, connections, steps of its unload that failed. Empty
   * once it is completely unloaded.
   * @throws {ModhostError} MODULE_UNKNOWN for a module that was never loaded
   */
  residue(name: string): string[];
  /**
   * Logs an uncaught error under the module in whose asynchronous context it arose, else under the
   * module that its stack names. Call it from the listeners of the process's events
   * `unhandledRejection` and `uncaughtException`, where that context is known; the host itself adds
   * no listeners to them.
   */
  report(error: unknown): void;
  /**
   * Logs an uncaught exception like `report`, and quarantines its module at once, or fails its
   * load. Returns false when the exception is the host's own or the configuration turns quarantine
   * off: the process should end then.
   */
  contain(error: unknown): boolean;
  /**
   * Checks a call of module code that would end the process or change its working folder. Returns
   * the error to throw; a module that wants to end the process is quarantined as well. Returns
   * undefined while the host stops, and for code that belongs to no module: these calls are
   * allowed.
   */
  refuse(act: ProcessAct): Error | undefined;
  /** Fires an event to the hooks of the modules and returns the first result. */
  fire(event: string, data?: unknown): unknown;
}
