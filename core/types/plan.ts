/** How a changed configuration affects a running server. */

/** The difference between the configuration in force and the current files. */
export interface ConfigPlan {
  /** The config file; undefined if the server has none. */
  readonly config: string | undefined;
  /** True if nothing differs. */
  readonly isEmpty: boolean;
  readonly options: readonly OptionChange[];
  /** Permissions that modules get or lose. */
  readonly permissions: readonly PermissionChange[];
  /** Modules in `modules.lock` that are added, removed or replaced by another version. */
  readonly installed: readonly InstalledChange[];
  readonly hosts: { readonly added: readonly string[]; readonly removed: readonly string[] };
  readonly modules: readonly ModuleStep[];
  readonly ports: readonly PortStep[];
  /**
   * Names whose certificates have changed, in the same files or because the configuration names
   * others.
   */
  readonly certificates: readonly string[];
  /** Names of options whose new values take effect at the next start. */
  readonly waiting: readonly string[];
}

/** An option whose value differs. */
export interface OptionChange {
  readonly name: string;
  /** "*" for the whole server. */
  readonly host: string;
  /** As text, without secrets; undefined if it is not set and has no default. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** `start`: the previous value stays until the next start. */
  readonly applies: "now" | "start";
  /** The modules that have read it, named as in `modhost modules`. */
  readonly readers: readonly string[];
}

/** An installed module that is added or removed, or another version of it. */
export interface InstalledChange {
  readonly module: string;
  /** The version that is installed now; undefined for a module that is added. */
  readonly from?: string | undefined;
  /** Undefined for a module that is removed. */
  readonly to?: string | undefined;
}

/** Permissions that a module gets or loses, in words: "may connect to api.example.org:443". */
export interface PermissionChange {
  readonly module: string;
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/** The effect of a change on an instance of a module. */
export interface ModuleStep {
  /**
   * `tell`: it keeps running and is notified of the change. `exchange`: a new instance replaces it.
   * `retry`: it failed to load or is quarantined, and is tried again; the change does not depend on
   * the outcome.
   */
  readonly action: "load" | "unload" | "exchange" | "tell" | "retry";
  readonly module: string;
  /** "*" for the whole server. */
  readonly host: string;
  /** Why: names of options, or a sentence. */
  readonly because: readonly string[];
}

/** A port that opens or closes. */
export interface PortStep {
  readonly action: "open" | "close";
  /** "http", "https" or another service that a module provides. */
  readonly service: string;
  readonly address: string;
  /** 0: the system chooses the port. */
  readonly port: number;
}
