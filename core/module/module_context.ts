import type { Config } from "../config/index.ts";
import type { EventBus } from "../events.ts";
import type { Certificates } from "../tls/index.ts";
import type { ListeningPort, ModuleState } from "../types.ts";
import type { Log } from "../util/log.ts";
import type { Instance } from "./instance.ts";
import type { Items } from "./items.ts";
import type { SharedTables } from "./shared.ts";
import type { Timers } from "./timers.ts";

/** What the host gives to each module instance. */
export interface ModuleContext {
  readonly bus: EventBus;
  readonly items: Items;
  readonly shared: SharedTables;
  readonly timers: Timers;
  readonly log: Log;
  readonly config: Config;
  /** Seconds that a module's own code may take for a step that others wait for. */
  readonly loadTimeout: number;
  /** The instance that another one gets for the name of a module; undefined when it is not loaded. */
  find(name: string, asking: Instance): Instance | undefined;
  listening(): readonly ListeningPort[];
  states(): readonly ModuleState[];
  tls(): ReturnType<Certificates["options"]>;
  /** The host opens ports. */
  readonly serves: boolean;
  /** Begins to stop the host. */
  stop(): void;
}
