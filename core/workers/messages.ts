/** What the processes of one server say to each other. All of it goes through the supervisor. */
import type { FollowStep, SiblingState } from "../host.ts";
import type { SharedPort } from "../ports/lent.ts";

/** In the environment of a process of a server: its number, from 1. */
export const WORKER = "MODHOST_WORKER";

/** A port as the supervisor keeps it; its socket goes beside the message. */
export type PortFacts = Omit<SharedPort, "server">;

/** What the first process answers for all. */
export interface Shared {
  /** Modules that it alone runs. */
  readonly modules: readonly string[];
  /** Every request is its own: a module of it looks at all of them. */
  readonly everything: boolean;
  /** Paths of its apps: these, and those that begin with one of `below` and a slash, or are the same. */
  readonly exact: readonly string[];
  readonly below: readonly string[];
  /** Requests are to be counted. */
  readonly isCounted: boolean;
  /** Where it takes requests of the other processes, and what each has to bring. */
  readonly socket: string;
  readonly token: string;
}

/** What a process begins with. */
export interface Begin {
  readonly number: number;
  readonly count: number;
  /** A folder of this server's own, for sockets. */
  readonly folder: string;
  /** What was done to modules since the server started. */
  readonly steps: readonly FollowStep[];
  /** For the first: ports that a process before it has opened. */
  readonly held: readonly PortFacts[];
  /** For the others. */
  readonly shared: Shared | undefined;
}

/** How a process is, told again when it has changed. */
export type WorkerState = SiblingState;
