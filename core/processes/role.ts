/** The role of a process among the processes of a server: primary or secondary. */
import { httpOf } from "../host/http_module.ts";
import type { Host, SiblingState, Siblings } from "../host.ts";
import type { Handlers } from "../relay/channel.ts";
import type { IpcChannel } from "../relay/ipc_channel.ts";
import type { Module } from "../types.ts";
import type { Begin, ServerState } from "./messages.ts";

export interface RoleDeps {
  readonly supervisor: IpcChannel;
  readonly begin: Begin;
  host(): Host | undefined;
}

export interface Role {
  readonly siblings: Siblings;
  /** Functions that the supervisor may call. */
  readonly handlers: Handlers;
  /** Called with a module of the host, so that the role takes part in metrics. */
  join(module: Module): void;
  /** Called when the apps of this process may have changed. */
  mounted?(): void;
  /** Called when the state of the server has changed. */
  use?(state: ServerState): void;
  /** Called when the host serves, and other processes can reach this one. */
  running(): void;
  close?(): void;
}

/** Returns the state of a process, for the primary and for metrics. */
export function stateOf(number: number, host: Host | undefined): SiblingState {
  const { user, system } = process.cpuUsage();
  return {
    number,
    pid: process.pid,
    connections: host?.connections() ?? 0,
    requests: httpOf(host)?.active() ?? [],
    failed: host?.modules().flatMap(({ name, status }) => (status === "loaded" ? [] : [name])) ?? [],
    cpu: (user + system) / 1e6,
    memory: process.memoryUsage.rss(),
  };
}
