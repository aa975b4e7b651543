/** What the processes of one server say to each other. All of it goes through the supervisor. */
import type { FollowStep, SiblingState } from "../host.ts";
import type { SharedPort } from "../ports/lent.ts";
import type { StickyBy } from "../types.ts";

/** In the environment of a process of a server: its number, from 1. */
export const WORKER = "MODHOST_WORKER";

/** A port as the supervisor keeps it; its socket goes beside the message. */
export type PortFacts = Omit<SharedPort, "server">;

/** What the first process answers for all. */
export interface Shared extends Paths {
  /** Modules that it alone runs. */
  readonly modules: readonly string[];
  /** Requests are to be counted. */
  readonly isCounted: boolean;
  /** Paths of apps whose clients stay with one process, by what tells them apart. */
  readonly sticky: Sticky;
}

/** Paths of apps, whatever the host. */
export interface Paths {
  /** Every request: a module looks at all of them. */
  readonly everything: boolean;
  /** These, and those that begin with one of `below` and a slash, or are the same. */
  readonly exact: readonly string[];
  readonly below: readonly string[];
}

export type Sticky = Readonly<Record<StickyBy, Paths>>;

/** Where a process takes requests of the others, and what each has to bring. */
export interface DoorFacts {
  readonly number: number;
  readonly socket: string;
  readonly token: string;
}

/** As the others hear of it. */
export interface KnownDoor extends DoorFacts {
  /** The process serves; otherwise another one is to take its place. */
  readonly isOpen: boolean;
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
  readonly doors: readonly KnownDoor[];
}

/** How a process is, told again when it has changed. */
export type WorkerState = SiblingState;
