/** The messages on the channels of `node:diagnostics_channel`, for tools that trace the server. */
import type { HttpRequest, HttpResponse } from "./exchange.ts";

/**
 * Published on the TracingChannel `modhost:request`: `start` when a request reaches its handlers or
 * is refused before that, `asyncEnd` when it ends, complete or not, and `error` before that for a
 * request that failed. All fields except the first two are set by then; `module` and `route` as
 * soon as a handler is called.
 */
export interface RequestTrace {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** Name of the module that responded; undefined if no route was called. */
  module: string | undefined;
  /** The key of its route, with the whole path: `GET /shop/items/*`. */
  route: string | undefined;
  /** Status on the wire; 0 when the client left before one was sent. */
  status: number;
  /** Whether the client received the whole response. */
  complete: boolean;
  /** The thrown value. */
  error: unknown;
}

/**
 * Published on the TracingChannel `modhost:command`: `start` when a command of the RPC is called,
 * `asyncEnd` when it has ended, and `error` before that for a command that failed.
 */
export interface CommandTrace {
  /** Path of the command in the table of commands: `pin/add`. */
  readonly command: string;
  error: unknown;
}

/**
 * Published on the TracingChannel `modhost:block`: the fetch of a block from peers, from `start` to
 * `asyncEnd`.
 */
export interface BlockTrace {
  readonly cid: { toString(): string };
  error: unknown;
}

/**
 * Published on the channel `modhost:client`: a request of `net/http` that is about to be sent, once
 * for each redirect.
 */
export interface ClientTrace {
  readonly method: string;
  readonly url: URL;
  /** Headers by lower-case name with dashes; subscribers may add to them. */
  readonly headers: Record<string, string | number | readonly string[] | undefined>;
}

/**
 * Published on the channel `modhost:log`: a log line of a module, the host or a request that is
 * about to be written.
 */
export interface LogTrace {
  /** The request that the line is about; undefined for a line of the host or a module. */
  readonly request: HttpRequest | undefined;
  /** Fields of the line; subscribers may add to them. */
  readonly fields: Record<string, unknown>;
}
