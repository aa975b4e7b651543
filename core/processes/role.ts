/** What one process is among the processes of a server. */
import type { Host, Siblings } from "../host.ts";
import type { InlineModule } from "../inline_modules.ts";
import type { Link, TakeConnection } from "./link.ts";
import type { Begin } from "./messages.ts";

export interface MemberDeps {
  readonly link: Link;
  readonly begin: Begin;
  host(): Host | undefined;
}

/** Joins a host with the others. */
export type JoiningModule = Exclude<InlineModule, string | ((...values: never[]) => unknown)>;

/** What a process is among the others. */
export interface Role {
  readonly siblings: Siblings;
  readonly module: JoiningModule;
  /** What the supervisor asks of it. */
  readonly handlers: Readonly<Record<string, (...values: never[]) => unknown>>;
  /** Takes a connection that another process has begun to read. */
  readonly passed: TakeConnection;
  /** The host serves. */
  running(): Promise<void>;
  close(): void;
}
