/** The state that a server reports about its parts. */
import type { ModuleRun, PermissionState } from "./permissions.ts";

/** An address that the host listens on; Unix sockets are not included. */
export interface ListeningPort {
  readonly service: string;
  readonly scheme: string | undefined;
  readonly address: string;
  readonly port: number;
}

/** One layer of the sandbox of a module. */
export interface SandboxLayerState {
  /** landlock, seccomp, limits, namespaces, user or node-permission. */
  readonly name: string;
  /** Whether it restricts the module. */
  readonly is_active: boolean;
  /** A sentence about what it does, or why it does not restrict the module. */
  readonly text: string;
  /** How to get it; only if it does not restrict the module. */
  readonly remedy?: string;
}

/** A module of the server, loaded or failed. */
export interface ModuleState {
  readonly name: string;
  /** "*" for the whole server. */
  readonly host: string;
  readonly status: "loading" | "loaded" | "failed" | "unloading" | "quarantined";
  /** Where its code runs. */
  readonly run: ModuleRun;
  /** Nothing is refused to it; what would have been is listed (`modules.NAME.audit`). */
  readonly is_audited?: true;
  /**
   * The layers of its sandbox, if it is sandboxed: those that restrict it, and why others do not.
   * Empty if it is audited, because nothing restricts it then.
   */
  readonly sandbox?: readonly SandboxLayerState[];
  /**
   * Whether a process is ready to take over when its sandbox ends or is reloaded. Only if
   * `modules.NAME.spare` is set.
   */
  readonly has_spare?: boolean;
  /** Its permissions: declared, granted, used or refused. Undefined if there is none. */
  readonly permissions?: readonly PermissionState[];
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
