/** The messages between the processes of one server. All of it goes through the supervisor. */
import type { ReplicatedChange, SiblingState } from "../host.ts";
import type { SharedPort } from "../ports/shared.ts";
import type { InnerAddress } from "../relay/inner_request.ts";
import type { StickyBy } from "../types.ts";

/** The environment variable that tells a process its number in the server, from 1. */
export const WORKER_VARIABLE = "MODHOST_WORKER";

/** A port that the supervisor retains. Its socket is sent next to the message. */
export type PortFacts = Omit<SharedPort, "server">;

/** The tasks of the primary for all processes. */
export interface PrimaryScope extends Paths {
  /** Modules that only the primary runs. */
  readonly modules: readonly string[];
  /** Whether the secondaries have to count their requests. */
  readonly isCounted: boolean;
  readonly sticky: StickyPaths;
}

/** Paths of apps, whatever the virtual host. */
export interface Paths {
  /** Every path: a module looks at all requests. */
  readonly everything: boolean;
  readonly exact: readonly string[];
  /** Each of these paths, and all paths that begin with it and a slash. */
  readonly below: readonly string[];
}

/** Paths of apps whose clients stay with one process, by how clients are recognized. */
export type StickyPaths = Readonly<Record<StickyBy, Paths>>;

/** Where a process takes requests of the others. */
export interface IpcSocketAddress extends InnerAddress {
  readonly number: number;
}

/** The IPC socket of a process, as the other processes know it. */
export interface KnownIpcSocket extends IpcSocketAddress {
  /** False while the process is being replaced. */
  readonly isOpen: boolean;
}

/** The data that a process starts with. */
export interface Begin {
  readonly number: number;
  readonly count: number;
  /** A folder of this server's own for its IPC sockets. */
  readonly folder: string;
  /** Changes that were made to modules since the server started. */
  readonly changes: readonly ReplicatedChange[];
  /** For the primary: ports that a primary before it has opened. */
  readonly ports: readonly PortFacts[];
  /** For secondaries. */
  readonly scope: PrimaryScope | undefined;
  readonly ipcSockets: readonly KnownIpcSocket[];
}

/** The state of a process, which it sends every second. */
export type WorkerState = SiblingState;
