import type { Catalog } from "./catalog.ts";
import type { ModuleContext } from "./module_context.ts";

/** What the modules of a host need of it. */
export interface ModulesDeps {
  readonly context: ModuleContext;
  readonly catalog: Catalog;
  /** Seconds for which a module that leaves may finish its requests. */
  grace(): number;
  /** Waits for ports that modules have asked for; fails when one cannot be opened. */
  settle(): Promise<void>;
  /** The ports are open: `module.ready` is called after a load. */
  isRunning(): boolean;
  /** What an instance has saved before this host began; it is given once. */
  takeSaved(key: string): { readonly value: unknown } | undefined;
  announce(event: string, data: unknown): void;
  /** The module is unloaded: ends the connections that its services have left. */
  hangUp(name: string): void;
}
