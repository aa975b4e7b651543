/** The keys of a route table, and the handler that each of them takes (spec 2 and 4). */

import type { HttpEvent } from "./exchange.ts";
import type { HandlerResult } from "./handler_result.ts";
import type { WebSocketEvent } from "./websocket.ts";

/** A request method that a route may name: those that Node's parser knows, except CONNECT. */
export type HttpMethod =
  | "ACL"
  | "BIND"
  | "CHECKOUT"
  | "COPY"
  | "DELETE"
  | "GET"
  | "HEAD"
  | "LINK"
  | "LOCK"
  | "M-SEARCH"
  | "MERGE"
  | "MKACTIVITY"
  | "MKCALENDAR"
  | "MKCOL"
  | "MOVE"
  | "NOTIFY"
  | "OPTIONS"
  | "PATCH"
  | "POST"
  | "PROPFIND"
  | "PROPPATCH"
  | "PURGE"
  | "PUT"
  | "QUERY"
  | "REBIND"
  | "REPORT"
  | "SEARCH"
  | "SOURCE"
  | "SUBSCRIBE"
  | "TRACE"
  | "UNBIND"
  | "UNLINK"
  | "UNLOCK"
  | "UNSUBSCRIBE";

/** The first word of a route key: a request method, or `WS` for websockets. */
export type Method = HttpMethod | "WS";

/**
 * `METHOD` for the base path of the app, `METHOD /path` for a path below it, `METHOD /path/*` for
 * all paths below that.
 */
export type RouteKey = Method | `${Method} /${string}`;

/** A key with a wildcard; its handlers receive the part of the path that the wildcard matches. */
export type WildcardKey = `${Method} ${string}/*`;

/**
 * The value that a handler returns, at once or as a promise. `undefined` passes the request to the
 * next route that matches.
 */
export type HandlerReturn = HandlerResult | void | Promise<HandlerResult | void>;

/** Handles requests under a key of either form: `path` is undefined if the key has no wildcard. */
export type Handler<E extends HttpEvent = HttpEvent> = (event: E, path: string | undefined) => HandlerReturn;

/** Handles requests under a key without wildcard. */
export type ExactHandler<E extends HttpEvent = HttpEvent> = (event: E, path: undefined) => HandlerReturn;

/**
 * Handles requests under a key with wildcard: `path` is the decoded part that it matches, without
 * leading slash.
 */
export type WildcardHandler<E extends HttpEvent = HttpEvent> = (event: E, path: string) => HandlerReturn;

/**
 * Decides whether a client gets a websocket. `event.accept()` returns the connection. A handler
 * that does not accept returns a result like any other (contract, part 4): a number refuses,
 * undefined passes the request to the next route of the method `WS`. After `accept` the result is
 * ignored, and a thrown error closes the connection with 1011.
 */
export type WebSocketHandler = Handler<WebSocketEvent>;

/** The event that the handlers of a key receive. */
export type EventOf<K extends string> = K extends "WS" | `WS ${string}` ? WebSocketEvent : HttpEvent;

/**
 * The handler that a key takes; for a key that the compiler does not know completely, any of the
 * forms.
 */
export type HandlerOf<K extends string> = string extends K
  ? Handler | ExactHandler | WildcardHandler
  : K extends RouteKey
    ? K extends WildcardKey
      ? WildcardHandler<EventOf<K>>
      : object extends Record<K, unknown>
        ? Handler<EventOf<K>> | ExactHandler<EventOf<K>> | WildcardHandler<EventOf<K>>
        : ExactHandler<EventOf<K>>
    : "A route key is METHOD, METHOD /path or METHOD /path/*";

/** Route key to handler; a value that is not a function is sent as if a handler had returned it. */
export type Routes<K extends string> = {
  [Key in K]?: HandlerOf<Key> | (Key extends RouteKey ? HandlerResult : undefined);
};

/**
 * Routes that are put together while the module runs: `const route: RouteTable = {}`, then for each
 * name ``route[`GET /${name}`] = handler``. A `Record<string, Handler>` is taken, too; the host
 * checks its keys.
 */
export type RouteTable = Routes<RouteKey>;
