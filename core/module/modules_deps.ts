import type { Catalog } from "./catalog.ts";
import type { ModuleContext } from "./module_context.ts";

/** The host, as its modules use it. */
export interface ModulesDeps {
  readonly context: ModuleContext;
  readonly catalog: Catalog;
  /** Seconds in which a module that is unloaded may finish its requests. */
  grace(): number;
  /** Waits for ports that modules have requested; rejects if one cannot be opened. */
  settle(): Promise<void>;
  /** Whether the ports are open: `module.ready` is then called after a load. */
  isRunning(): boolean;
  /**
   * Returns the state that an instance saved before this host started; each state is returned once.
   */
  takeSaved(key: string): { readonly value: unknown } | undefined;
  announce(event: string, data: unknown): void;
  /** Called when the module is unloaded: closes the connections that its services have left. */
  hangUp(name: string): void;
}
