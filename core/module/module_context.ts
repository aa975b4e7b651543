import type { Config } from "../config/index.ts";
import type { EventBus } from "../events.ts";
import type { Certificates } from "../tls/index.ts";
import type { ListeningPort, ModuleState, Server, Tokens } from "../types.ts";
import type { Log } from "../util/log.ts";
import type { Items } from "./items.ts";
import type { SharedTables } from "./shared.ts";
import type { Timers } from "./timers.ts";

/** An instance as those that depend on it get it. */
export interface Dependency {
  /** `name@host`. */
  readonly key: string;
  /** What the module's function returned. */
  readonly exports: unknown;
}

/** An instance that asks for another one. */
export interface Dependent {
  readonly name: string;
  readonly host: string;
  readonly phase: "loading" | "loaded" | "unloading" | "gone";
  /** While it is loading: the instances that are made together with it; those not made yet are undefined. */
  readonly group: ReadonlyMap<string, Dependency | undefined> | undefined;
}

/** An instance that asks for changes of the server. */
export interface Asker {
  readonly name: string;
  /** Why none can be made for it now: the code that asks is being waited for. */
  readonly occupied: string | undefined;
  /** What is undone when it is unloaded, unless it is forgotten before. */
  hold(kind: string, label: string, release: () => unknown): { forget(): void };
}

/** What the host gives to each module instance. */
export interface ModuleContext {
  readonly bus: EventBus;
  readonly items: Items;
  readonly shared: SharedTables;
  readonly timers: Timers;
  readonly log: Log;
  /** What is in force, or about to be: instances that are made now go by it. */
  readonly config: Config;
  /** Seconds that a module's own code may take for a step that others wait for. */
  readonly loadTimeout: number;
  /** The instance that another one gets for the name of a module; undefined when it is not loaded. */
  find(name: string, asking: Dependent): Dependency | undefined;
  listening(): readonly ListeningPort[];
  states(): readonly ModuleState[];
  /** One of them is late. */
  awaits(): boolean;
  tls(): ReturnType<Certificates["options"]>;
  readonly tokens: Tokens;
  /** The host opens ports. */
  readonly serves: boolean;
  /** Refuses what cannot be done where the module runs: a hook of an event, an item or a receiver of a kind. */
  admit?(what: "hook" | "item" | "receiver", name: string): void;
  /** Hears of each failure of a module's own code, after it is counted. */
  failed(owner: Dependency, step: string, error: unknown): void;
  /** What `module.server` is for an instance. */
  server(asker: Asker): Server;
}
