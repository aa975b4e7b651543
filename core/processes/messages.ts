/**
 * The types of the data in messages between the processes of one server. All messages go through
 * the supervisor. Their names are those of the handlers in `supervisor.ts`, `worker.ts`,
 * `primary.ts` and `secondary.ts`.
 */
import type { ReplicatedChange } from "../host.ts";
import type { SharedPort } from "../ports/shared.ts";
import type { StickyBy } from "../types.ts";

/** The environment variable that tells a process its number in the server, from 1. */
export const WORKER_VARIABLE = "MODHOST_WORKER";

/** A port that the supervisor retains. Its socket is sent next to the message. */
export type PortFacts = Omit<SharedPort, "server">;

/** The requests that the primary serves for all processes. */
export interface PrimaryScope extends Paths {
  /** Modules that only the primary runs. */
  readonly modules: readonly string[];
  /** Whether the secondaries have to count their requests. */
  readonly isCounted: boolean;
  readonly sticky: StickyPaths;
}

/** Paths of apps on any virtual host. */
export interface Paths {
  /** True for every path, because a module handles all requests. */
  readonly everything: boolean;
  readonly exact: readonly string[];
  /** Paths that stand for themselves and for everything below them. */
  readonly below: readonly string[];
}

/** Paths of apps whose clients stay with one process, by how clients are recognized. */
export type StickyPaths = Readonly<Record<StickyBy, Paths>>;

/** The facts about the server that every process knows. */
export interface ServerState {
  /** Undefined until the first primary serves. */
  readonly scope: PrimaryScope | undefined;
  /** The numbers of the processes that serve. */
  readonly serving: readonly number[];
}

/** The data that a process starts with. */
export interface Begin extends ServerState {
  readonly number: number;
  readonly count: number;
  /** The folder for the IPC sockets of the processes. */
  readonly folder: string;
  /** Every request from one process to another carries this token. */
  readonly token: string;
  /** Changes that were made to modules since the server started. */
  readonly changes: readonly ReplicatedChange[];
  /** For the primary: ports that the previous primary had opened. */
  readonly ports: readonly PortFacts[];
}
