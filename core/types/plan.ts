/** What a changed configuration makes of a running server. */

/** The difference between the configuration that is in force and the one that is there now. */
export interface ConfigPlan {
  /** The config file; undefined where there is none. */
  readonly config: string | undefined;
  /** Nothing differs. */
  readonly isEmpty: boolean;
  readonly options: readonly OptionChange[];
  readonly hosts: { readonly added: readonly string[]; readonly removed: readonly string[] };
  readonly modules: readonly ModuleStep[];
  readonly ports: readonly PortStep[];
  /** Names whose certificates are others now, in the same files or in those of another configuration. */
  readonly certificates: readonly string[];
  /** Names of options whose new values wait for the next start. */
  readonly waiting: readonly string[];
}

/** An option whose value differs. */
export interface OptionChange {
  readonly name: string;
  /** "*" for the whole server. */
  readonly host: string;
  /** As text, without secrets; undefined where it is not set and has no default. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** `start`: the former value stays until the next start. */
  readonly applies: "now" | "start";
  /** The modules that have read it, as `modhost modules` names them. */
  readonly readers: readonly string[];
}

/** What becomes of an instance of a module. */
export interface ModuleStep {
  /**
   * `tell`: it goes on, and hears of the change. `exchange`: a new instance takes its place. `retry`: it did not load, or is
   * in quarantine, and is tried again; the change does not depend on it.
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
  /** "http", "https" or what another module provides. */
  readonly service: string;
  readonly address: string;
  /** 0: one of the system's choice. */
  readonly port: number;
}
