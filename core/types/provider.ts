/** What a module gives to `module.provides("http", ...)`, and what its handlers may answer (spec 2 and 4). */
import type { Readable } from "node:stream";
import type { HttpEvent, ResponseHeaders } from "./exchange.ts";

/** `METHOD`, `METHOD /path` or `METHOD /path/*` (spec 2). */
export type RouteKey = string;

/**
 * Answers a request (spec 4). `path` is the decoded part of the path that the wildcard stands for, without a leading
 * slash; undefined on a route without wildcard.
 */
export type Handler = (event: HttpEvent, path: string) => HandlerResult | void | Promise<HandlerResult | void>;

/**
 * string: the body. number: the status, with the error page from 400 on. true: `response.send` comes later.
 * undefined or null: the next matching handler. false: 200 and nothing. Bytes, streams and async iterables: the body.
 */
export type HandlerResult =
  | string
  | number
  | boolean
  | null
  | undefined
  | Uint8Array
  | Readable
  | ReadableStream
  | AsyncIterable<string | Uint8Array>
  | ResponseFields;

/** An answer as an object: `headers` are merged into the response, these other fields are copied onto it. */
export interface ResponseFields {
  status_code?: number;
  /** A reason phrase of its own, for HTTP/1. */
  status?: string;
  headers?: ResponseHeaders;
  body?: string | Uint8Array | Readable | ReadableStream | AsyncIterable<string | Uint8Array>;
  trailers?: ResponseHeaders | (() => ResponseHeaders);
}

export interface HttpProvider {
  /** Route key to handler; a value that is not a function is answered as if a handler had returned it. */
  readonly route: Readonly<Record<RouteKey, Handler | HandlerResult>>;
  /** Overrides the app name (discouraged). */
  readonly name?: string;
  /** Replaces `/<app-name>`; the option `http_paths` goes before it. */
  readonly default_path?: string;
  /** Handlers are called before the body is read and take it from `request.body_stream`. */
  readonly streaming_uploads?: boolean;
  /** Priority among routes of other apps that match equally well. Default 0. */
  readonly priority?: number;
  readonly cors?: CorsSettings;
}

export interface CorsSettings {
  readonly enabled?: boolean;
  readonly credentials?: boolean;
  /** Origins that may read answers; "*" is any. */
  readonly origins?: readonly string[] | "*";
  /** Request headers allowed beyond Content-Type (true) or taken away (false). */
  readonly headers?: Readonly<Record<string, boolean>>;
}
