/** The public face of a host, and what it is made from. */
import type { Socket } from "node:net";
import type { Config } from "../config/index.ts";
import type { InlineModule } from "../inline_modules.ts";
import type { Clock } from "../module/clock.ts";
import type { SavedState } from "../module/saved.ts";
import type { Progress } from "../operations/change.ts";
import type { HeldPort, InheritedSocket } from "../ports/inherited.ts";
import type { LentPorts, SharedPort } from "../ports/lent.ts";
import type {
  Change,
  ConfigPlan,
  ListeningPort,
  ModuleLog,
  ModuleState,
  ServerStatus,
  StickyBy,
  Successor,
} from "../types.ts";
import type { LogSettings } from "../util/log.ts";

/**
 * Resolves when the other process can begin, and calls `host.handOver` then.
 * @throws {ModhostError} NOT_HANDED_OVER: nothing has changed
 */
export type PrepareSuccessor = (wanted: Successor, progress: Progress) => Promise<void>;

/** What a host leaves to the one that goes on in its place. */
export interface Handed {
  /** They are open; whoever connects waits. */
  readonly ports: readonly HeldPort[];
  readonly states: readonly SavedState[];
}

export interface HostOptions {
  /** The whole configuration: no file is looked for, unless `configPath` names one, over which these values win. */
  readonly config?: Readonly<Record<string, unknown>> | Config;
  /** The config file; default: searched from `cwd`. */
  readonly configPath?: string | undefined;
  /** False: without `configPath` no file is read, not even the embedded default. Default true. */
  readonly search?: boolean;
  /** Relative paths of `configPath` and `modules` count from here. Default: the current folder. */
  readonly cwd?: string;
  /** Holds the variables MODHOST_<OPTION>; default: the environment of the process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly modules?: readonly InlineModule[];
  /** False: everything is loaded and no port is opened. Default true. */
  readonly listen?: boolean;
  /** Listening sockets that the process was started with, such as those of systemd, or ports of a host before this one. */
  readonly sockets?: readonly InheritedSocket[];
  /** What modules of a host before this one have saved, for `module.restore`. */
  readonly states?: readonly SavedState[];
  /** Prepares a process that is to go on in place of this host; without it, `module.server.hand_over` is refused. */
  readonly successor?: PrepareSuccessor;
  /** False: no certificate is read or made, and nothing is served over TLS. Default true. */
  readonly tls?: boolean;
  /** Over the options log_level and log_format; false: nothing is written. */
  readonly log?: LogSettings | false;
  /**
   * Watches the files of modules, and the config file: a module is reloaded when one of its files is saved. Hears what came
   * of each reload. While it watches, navigations of browsers of this machine to an app whose reload has failed are
   * answered with the failure and its source line. Modules that come with the host, and installed packages, are not watched.
   */
  readonly watch?: (reload: Change) => void;
  /** What `module.add_timer` and `module.now` go by, and nothing else; default: the time of the system. */
  readonly clock?: Clock;
  /** Other processes serve as well. */
  readonly siblings?: Siblings;
}

/** A change that one process has made, for the others. */
export type FollowStep =
  | { readonly kind: "load" | "unload" | "reload"; readonly name: string; readonly host: string | undefined }
  | { readonly kind: "apply" | "reopen" };

/** How another process of the server is. */
export interface SiblingState {
  /** From 1. */
  readonly number: number;
  readonly pid: number;
  readonly connections: number;
  /** What is being answered: a line each. */
  readonly requests: readonly string[];
  /** Modules that are not loaded there. */
  readonly failed: readonly string[];
  /** Seconds of CPU time so far. */
  readonly cpu: number;
  /** Resident bytes. */
  readonly memory: number;
}

/** The other processes of a server of several. */
export interface Siblings {
  /** Of one that is not the first: modules that the first one runs. */
  readonly isElsewhere?: (name: string) => boolean;
  /** The same: it opens no ports, orders no certificates and records no changes. */
  readonly lent?: LentPorts;
  /** Of the first: its ports and its modules may be others now. */
  changed?(): void;
  /** How the others are. */
  states?(): readonly SiblingState[];
  /** What it has changed is changed in the others, one after the other. Resolves when it is done; `told` hears of each. */
  follow?(step: FollowStep, told: (what: string) => void): Promise<void>;
}

export type HostPhase = ServerStatus["phase"];

/** Code calls what concerns the process of all modules. */
export interface ProcessAct {
  /** As people read it: `process.exit(1)`. */
  readonly act: string;
  /** The process would end. */
  readonly ends: boolean;
  /** Its stack tells who calls. */
  readonly called: Error;
}

/** A host as the other processes of its server use it. */
export interface SharedFace {
  /** Open ports that they can listen on, too. */
  ports(): SharedPort[];
  /** Names of loaded modules that say that they are shared, and of all that depend on them. */
  modules(): ReadonlySet<string>;
  /** Names of loaded modules whose clients are told apart in this way, and of all that depend on them. */
  sticky(by: StickyBy): ReadonlySet<string>;
  /** Writes a line of the log of another process, a JSON object; `from` is its number, undefined for none. */
  relayLog(line: string, from: number | undefined): void;
}

/** A module host: loads modules, keeps their ports open, and takes both down again. */
export interface Host extends AsyncDisposable {
  readonly state: HostPhase;
  /** Known from `start` on. */
  readonly config: Config;
  readonly log: ModuleLog;
  /**
   * Reads the configuration, loads the modules, opens the ports. A module that fails is a ModuleState with status
   * "failed"; the others go on.
   * @throws {ModhostError} CONFIG_*, OPTION_INVALID, TLS_INVALID, PORT_*: nothing is left open then
   */
  start(): Promise<void>;
  /**
   * Finishes requests in flight and unloads everything, in `timeout` seconds (default: the option stop_timeout). With
   * `by`, who wants it is recorded as for other changes.
   */
  stop(options?: { readonly timeout?: number; readonly by?: string }): Promise<void>;
  /**
   * As `stop`, but for another host that goes on in its place: the ports stay open, and new connections wait for it.
   * @throws {ModhostError} CHANGE_REFUSED when it does not run
   */
  handOver(): Promise<Handed>;
  /** Resolves when the host has stopped, whoever asked for it: a module may by `module.stop_server()`. */
  readonly ended: Promise<void>;
  /** Loads a module by name or path: on all hosts, unless one is named. */
  load(name: string, host?: string): Promise<void>;
  /** Finishes the requests of a module and unloads it, after those that depend on it. */
  unload(name: string, host?: string): Promise<void>;
  /** Loads a module anew beside itself and exchanges both in one step; when that fails, it stays as it is. */
  reload(name: string, host?: string): Promise<void>;
  /**
   * What a changed configuration makes of this host: the file and the environment are read again, and nothing is changed.
   * @throws {ModhostError} CONFIG_FIXED without a file to read, and what `start` throws for a wrong configuration
   */
  plan(): Promise<ConfigPlan>;
  /**
   * Puts a changed configuration in force, as a whole: modules that it does not concern go on, with all their connections.
   * When any part of it fails, nothing has changed. `by` is who wants it, for the record.
   * @throws {ModhostError} what `plan` throws; CONFIG_NOT_APPLIED naming the step that failed
   */
  apply(options?: { readonly by?: string }): Promise<ConfigPlan>;
  /** Opens the files that logs are written to again; each that cannot be opened goes on as it was, and is told of. */
  reopenLogs(by?: string): Promise<void>;
  /** How the host is, as `modhost status` shows it. Known from `start` on. */
  status(): ServerStatus;
  /** State of every module, of failed ones too. */
  modules(): ModuleState[];
  /** What a loaded module's function returned: the same as `module.depends` gives. */
  exports<T = unknown>(name: string, host?: string): T;
  /** What the other processes of a server of several have to do with this host. */
  readonly shared: SharedFace;
  /** Addresses that the host listens on now. */
  listening(): ListeningPort[];
  /** Number of connections that came in through the ports and are open. */
  connections(): number;
  /**
   * Gives a connection to the module that provides a service ("http", "https"), as if it had come in through a port.
   * @throws {ModhostError} SERVICE_MISSING
   */
  connect(service: string, socket: Socket): void;
  /**
   * What the host still has of a module, one line for each thing: itself, hooks, items, timers, shared tables, services,
   * connections, steps of its unloading that failed. Empty once it is unloaded.
   * @throws {ModhostError} MODULE_UNKNOWN for a module that was never loaded
   */
  residue(name: string): string[];
  /**
   * Logs an error that nobody caught, under the module whose code its stack names. Meant for the process's events
   * `unhandledRejection` and `uncaughtException`, on which the host itself never listens.
   */
  report(error: unknown): void;
  /**
   * As `report`, for an exception after which nobody knows what was left undone: the module whose code it comes from is
   * taken out at once. False when it is nobody's, or of a module that is never taken out: the process better ends.
   */
  contain(error: unknown): boolean;
  /**
   * Gives the error to throw to code of a module that wants to end or move the process of all; who wants to end it is taken
   * out as well. Undefined while the host stops, and for code that is no module's: it may.
   */
  refuse(act: ProcessAct): Error | undefined;
  /** Fires an event to the hooks of the modules; the first answer is returned. */
  fire(event: string, data?: unknown): unknown;
}
