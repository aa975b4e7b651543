/** What a module gives to `module.provides("http", ...)`, and what its handlers may answer (spec 2 and 4). */
import type { Readable } from "node:stream";
import type { ResponseHeaders } from "./exchange.ts";
import type { Middleware } from "./middleware.ts";
import type { RouteKey, Routes } from "./routes.ts";
import type { WebSocketSettings } from "./websocket.ts";

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
  | PooledBody
  | ResponseFields;

/**
 * A body that takes its pieces back, to use their memory again. `release` is called once for each piece of bytes that
 * the connection needs no longer, sent or not; until then the piece stays as it is. It may be called after the
 * iteration has ended, and it is not called where a connection was lost before it took the piece.
 */
export interface PooledBody extends AsyncIterable<string | Uint8Array> {
  release(piece: Uint8Array): void;
}

/** An answer as an object: `headers` are merged into the response, these other fields are copied onto it. */
export interface ResponseFields {
  status_code?: number;
  /** A reason phrase of its own, for HTTP/1. */
  status?: string;
  headers?: ResponseHeaders;
  body?: string | Uint8Array | Readable | ReadableStream | AsyncIterable<string | Uint8Array> | PooledBody;
  trailers?: ResponseHeaders | (() => ResponseHeaders);
}

/** How an answer of `text` or `json` differs from the usual one. */
export interface ReplyOptions {
  /** Default 200. */
  readonly status_code?: number;
  /** Further headers; one that the answer has already replaces it. */
  readonly headers?: ResponseHeaders;
}

/** An answer that html`...` made. Within another html`...` its body goes in as it is. */
export interface HtmlAnswer extends ResponseFields {
  readonly status_code: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

/** Headers for answers that do not have them, such as `{ content_type: "text/plain; charset=utf-8" }`. */
export interface DefaultHeaders {
  /** For answers of handlers that have a body. Middleware and error pages give types of their own. */
  readonly content_type?: string | undefined;
  /** `nosniff`, for all answers: browsers go by the content type and by nothing else. */
  readonly x_content_type_options?: string | undefined;
}

/** An app: what `module.provides("http", ...)` takes. `K` are the keys of its routes, where they are known. */
export interface HttpProvider<K extends string = RouteKey> extends AppSettings {
  /** Route key to handler; a value that is not a function is answered as if a handler had returned it. */
  readonly route: Readonly<Routes<K>>;
  /** Asked when none of these routes answers; see MiddlewareProvider. */
  readonly middleware?: Middleware;
}

/** An app of Koa middleware, with or without routes before it. */
export interface MiddlewareProvider<K extends string = RouteKey> extends AppSettings {
  /**
   * A Koa middleware function, a list of them, or a Koa application: asked for every path of the app that no route
   * answers. It reads the request body itself, up to `http_max_content_size`, or without limit with
   * `streaming_uploads`.
   */
  readonly middleware: Middleware;
  readonly route?: Readonly<Routes<K>>;
}

interface AppSettings {
  /** Overrides the app name (discouraged). */
  readonly name?: string;
  /** Replaces `/<app-name>`; the option `http_paths` goes before it. */
  readonly default_path?: string;
  /** Handlers are called before the body is read and take it from `request.body_stream`. */
  readonly streaming_uploads?: boolean;
  /** Priority among routes of other apps that match equally well. Default 0. */
  readonly priority?: number;
  readonly cors?: CorsSettings;
  /** Headers for answers of this app that lack them; the option `http_default_headers` goes before it for the app. */
  readonly default_headers?: DefaultHeaders;
  /** Rules for routes of the method `WS`. */
  readonly websocket?: WebSocketSettings;
}

export interface CorsSettings {
  readonly enabled?: boolean;
  readonly credentials?: boolean;
  /** Origins that may read answers; "*" is any. */
  readonly origins?: readonly string[] | "*";
  /** Request headers allowed beyond Content-Type (true) or taken away (false). */
  readonly headers?: Readonly<Record<string, boolean>>;
}
