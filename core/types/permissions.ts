/** Permissions of modules, as modules declare them and as operators grant them. */

/**
 * The kinds of permissions. `read`, `write`, `run` and `addons` are enforced by the sandbox of the
 * module's process; `connect`, `listen`, `env`, `options` and `call` are decided by the host.
 */
export type PermissionKind = "read" | "write" | "connect" | "env" | "options" | "call" | "listen" | "run" | "addons";

/**
 * The type of `export const permissions`, of `modhost.permissions` in a `package.json`, and of
 * `modules.NAME.grant` in the configuration.
 */
export interface ModulePermissions {
  /** Files and folders, absolute or relative to the module's own folder. */
  readonly read?: readonly string[];
  /** Folders that it may change, in the same forms; "data" is its own folder below `data_path`. */
  readonly write?: readonly string[];
  /** Hosts with a port: "api.example.org:443", "*.example.org:443", "10.0.0.5:5432", "[::1]:80". */
  readonly connect?: readonly string[];
  /** Names of environment variables. */
  readonly env?: readonly string[];
  /** Names of options that are not its own. */
  readonly options?: readonly string[];
  /**
   * Modules whose functions it may call: the names of the functions, such as "add" or "pin.ls", or
   * true for all of them.
   */
  readonly call?: Readonly<Record<string, true | readonly string[]>>;
  /** TCP ports that it may listen on, at any address of the machine. */
  readonly listen?: readonly number[];
  /** Programs that it may run, absolute or relative to its own folder. */
  readonly run?: readonly string[];
  /** Whether it may load native addons. */
  readonly addons?: boolean;
}

/** Where the code of a module runs: in the host, in a worker thread, or in a process of its own. */
export type ModuleRun = "trusted" | "isolated" | "sandboxed";

/** A permission of a module: whether it is declared and granted, and how often it was used. */
export interface PermissionState {
  readonly kind: PermissionKind;
  /** The path, host, name, function or port. */
  readonly what: string;
  /** In words: "may connect to api.example.org:443". */
  readonly text: string;
  readonly is_declared: boolean;
  readonly is_granted: boolean;
  /**
   * Whether it is refused unless it is granted. Nothing is refused to a trusted or audited module,
   * and to an isolated one only `env` and `call`, if it has a grant.
   */
  readonly is_enforced: boolean;
  /** How often it was used; undefined if the kernel enforces it, which counts nothing. */
  readonly used?: number;
  /** How often it was refused, or with `audit` would have been. */
  readonly denied?: number;
  /** When it was used or refused for the last time. */
  readonly last?: string;
  /** The setting that would grant it; undefined if it is granted. */
  readonly grant?: string;
}
