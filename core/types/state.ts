/** What a server tells of its parts. */

/** An address that the host listens on; Unix sockets are not among them. */
export interface ListeningPort {
  readonly service: string;
  readonly scheme: string | undefined;
  readonly address: string;
  readonly port: number;
}

/** A module of the server, loaded or failed. */
export interface ModuleState {
  readonly name: string;
  /** "*" for the whole server. */
  readonly host: string;
  readonly status: "loading" | "loaded" | "failed" | "unloading" | "quarantined";
  /** Undefined for a module that was given as a value. */
  readonly file: string | undefined;
  /** From `set_status`, or the failure, or why it is in quarantine. */
  readonly note: string | undefined;
  /** Of a note from `set_status`: how grave it is. */
  readonly note_level?: "info" | "warn" | "error";
  /** Modules that it depends on. */
  readonly depends: readonly string[];
  /** What it has added, by kind: hooks, items, timers, ... */
  readonly holds: Readonly<Record<string, number>>;
  /** Of one that failed: it lacks what comes by itself, and is loaded again until it is there. */
  readonly is_late?: boolean;
  /** Of a module in quarantine, seconds since 1970: since when, and when it is tried again (undefined while it is). */
  readonly quarantine?: { readonly since: number; readonly next_try: number | undefined };
}
