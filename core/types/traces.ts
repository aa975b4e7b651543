/** What is told on the channels of `node:diagnostics_channel`, to whoever traces what the server does. */
import type { HttpRequest, HttpResponse } from "./exchange.ts";

/**
 * On the TracingChannel `modhost:request`: `start` when a request reaches its handlers, `asyncEnd` when it is over, complete
 * or not, and `error` before it for one that failed. The fields but the first two are set by then.
 */
export interface RequestTrace {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** Name of the module that answered; undefined where no route was asked. */
  module: string | undefined;
  /** The key of its route, with the whole path: `GET /shop/items/*`. */
  route: string | undefined;
  /** Status on the wire; 0 when the client left before one was sent. */
  status: number;
  /** The client received everything. */
  complete: boolean;
  /** What was thrown. */
  error: unknown;
}

/**
 * On the TracingChannel `modhost:command`: `start` when a command of the RPC is called, `asyncEnd` when it has ended, and
 * `error` before it for one that failed.
 */
export interface CommandTrace {
  /** Its path in the table of commands: `pin/add`. */
  readonly command: string;
  error: unknown;
}

/** On the TracingChannel `modhost:block`: a block that is fetched from peers, from `start` to `asyncEnd`. */
export interface BlockTrace {
  readonly cid: { toString(): string };
  error: unknown;
}

/** On the channel `modhost:client`: a request of `net/http` that is about to be sent, once for each redirect. */
export interface ClientTrace {
  readonly method: string;
  readonly url: URL;
  /** By lower-case name with dashes; whoever listens may add to them. */
  readonly headers: Record<string, string | number | readonly string[] | undefined>;
}
