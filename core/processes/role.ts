/** The role of a process among the processes of a server: primary or secondary. */
import type { Host, Siblings } from "../host.ts";
import type { InlineModule } from "../inline_modules.ts";
import type { Handlers } from "../relay/channel.ts";
import type { IpcChannel, TakeConnection } from "../relay/ipc_channel.ts";
import type { Begin } from "./messages.ts";

export interface RoleDeps {
  readonly supervisor: IpcChannel;
  readonly begin: Begin;
  host(): Host | undefined;
}

/**
 * A module that the host of the process loads, so that the role takes part in requests and metrics.
 */
export type RoleModule = Exclude<InlineModule, string | ((...values: never[]) => unknown)>;

export interface Role {
  readonly siblings: Siblings;
  readonly module: RoleModule;
  /** Functions that the supervisor may call. */
  readonly handlers: Handlers;
  /** Takes a connection that another process has begun to read. */
  readonly takeConnection: TakeConnection;
  /** Called when the host serves. */
  running(): Promise<void>;
  close(): Promise<void>;
}
