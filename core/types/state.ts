/** The state that a server reports about its parts. */

/** An address that the host listens on; Unix sockets are not included. */
export interface ListeningPort {
  readonly service: string;
  readonly scheme: string | undefined;
  readonly address: string;
  readonly port: number;
}

/**
 * How a module runs: in the thread of the host, in a worker thread of its own, or in a process of
 * its own that the kernel restricts.
 */
export type RunMode = "trusted" | "isolated" | "sandboxed";

/** A module of the server, loaded or failed. */
export interface ModuleState {
  readonly name: string;
  /** "*" for the whole server. */
  readonly host: string;
  readonly status: "loading" | "loaded" | "failed" | "unloading" | "quarantined";
  readonly run: RunMode;
  /** Undefined for a module that was passed as a value. */
  readonly file: string | undefined;
  /** The text of `set_status`, the failure, or the reason for the quarantine. */
  readonly note: string | undefined;
  /** The level of a note from `set_status`. */
  readonly note_level?: "info" | "warn" | "error";
  /** Modules that it depends on. */
  readonly depends: readonly string[];
  /** Counts of what it has added, by kind: hooks, items, timers, ... */
  readonly holds: Readonly<Record<string, number>>;
  /**
   * For a failed module: it needs something that will appear by itself, and the host keeps trying
   * to load it until that exists.
   */
  readonly is_late?: boolean;
  /**
   * For a quarantined module, in seconds since 1970: when the quarantine began, and when the module
   * is tried again (undefined during the attempt).
   */
  readonly quarantine?: { readonly since: number; readonly next_try: number | undefined };
}
