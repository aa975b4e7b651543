/** What two processes of a server say to each other while one goes on in place of the other. */
import type { SavedState } from "../../host.ts";
import type { HeldPort } from "../../ports/inherited.ts";

/** In the environment of a process that is to go on in place of its parent. */
export const SUCCESSOR = "MODHOST_SUCCESSOR";

/** A port, with its listening socket beside the message. */
export interface PortMessage extends Pick<HeldPort, "name" | "asked"> {
  readonly type: "port";
}

/** From the process that leaves. */
export type FromFormer =
  | PortMessage
  /** All ports have been sent: the repo is closed, and everything may be opened. */
  | { readonly type: "begin"; readonly states: readonly SavedState[] }
  /** A connection that nobody has served, beside the message. */
  | { readonly type: "connection"; readonly service: string }
  /** There is nothing left to send. */
  | { readonly type: "over" };

/** Everything was loaded once, without a port. */
export interface Checked {
  readonly type: "checked";
  readonly version: string;
  readonly data: string;
  readonly failed: readonly { readonly name: string; readonly host: string; readonly note: string }[];
}

/** From the process that begins. */
export type FromSuccessor =
  | Checked
  | { readonly type: "failed"; readonly reason: string }
  /** It serves. */
  | { readonly type: "running" }
  /** It has all that was sent. */
  | { readonly type: "taken" };
