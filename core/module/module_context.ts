import type { Config } from "../config/index.ts";
import type { EventBus } from "../events.ts";
import type { Certificates } from "../tls/index.ts";
import type { ListeningPort, ModuleState, PermissionState, Server, Tokens } from "../types.ts";
import type { Log } from "../util/log.ts";
import type { Items } from "./items.ts";
import type { DeclaredRights } from "./rights.ts";
import type { SharedTables } from "./shared.ts";
import type { Timers } from "./timers.ts";

/** An instance as the modules that depend on it get it. */
export interface Dependency {
  /** `name@host`. */
  readonly key: string;
  /** The return value of the module's function. */
  readonly exports: unknown;
}

/** An instance that depends on another one. */
export interface Dependent {
  readonly name: string;
  readonly host: string;
  readonly phase: "loading" | "loaded" | "unloading" | "gone";
  /**
   * While it is loading: the instances that are built together with it; undefined for those not
   * built yet.
   */
  readonly group: ReadonlyMap<string, Dependency | undefined> | undefined;
}

/** An instance that requests changes of the server. */
export interface RequestingInstance {
  readonly name: string;
  /** Why no change can be made for it now: the host is waiting for the code that requests it. */
  readonly occupied: string | undefined;
  /** Registers a release for its unload, unless it is forgotten before. */
  recordRelease(kind: string, label: string, release: () => unknown): { forget(): void };
}

/** The services of the host for a module instance. */
export interface ModuleContext {
  readonly bus: EventBus;
  readonly items: Items;
  readonly shared: SharedTables;
  readonly timers: Timers;
  readonly log: Pick<Log, "host" | "of">;
  /** The configuration in force, or about to be; new instances use it. */
  readonly config: Config;
  /** Seconds that a module's own code may take for a step that the host waits for. */
  readonly loadTimeout: number;
  /**
   * Returns the instance that another one gets for the name of a module; undefined if it is not
   * loaded.
   */
  find(name: string, dependent: Dependent): Dependency | undefined;
  listening(): readonly ListeningPort[];
  states(): readonly ModuleState[];
  /** Returns true if one of the modules is late. */
  awaits(): boolean;
  tls(): ReturnType<Certificates["options"]>;
  readonly tokens: Tokens;
  /** Whether the host opens ports. */
  readonly serves: boolean;
  /**
   * Refuses effects that are impossible where the module runs: a hook of an event, an item or a
   * receiver of a kind. A read of an option may be refused as well.
   */
  admit?(what: "hook" | "item" | "receiver" | "option", name: string): void;
  /** Returns the permissions of a module. */
  permissions?(code: DeclaredRights): readonly PermissionState[];
  /** Called with each failure of a module's own code, after it was counted. */
  failed(owner: Dependency, step: string, error: unknown): void;
  /** Returns `module.server` for an instance. */
  server(requester: RequestingInstance): Server;
}
