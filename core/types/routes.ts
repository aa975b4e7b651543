/** The keys of a route table, and the handler that each of them takes (spec 2 and 4). */
import type { HandlerResult } from "./answer.ts";
import type { HttpEvent } from "./exchange.ts";
import type { WebSocketEvent } from "./websocket.ts";

/** A request method that a route may name: those that Node's parser knows, but CONNECT. */
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

/** `METHOD` for the base path of the app, `METHOD /path` for a path below it, `METHOD /path/*` for all below that. */
export type RouteKey = Method | `${Method} /${string}`;

/** A key whose handlers get what the wildcard stands for. */
export type WildcardKey = `${Method} ${string}/*`;

/** What a handler gives, at once or later. Nothing at all passes the request to the next route that matches. */
export type HandlerAnswer = HandlerResult | void | Promise<HandlerResult | void>;

/** Answers requests under a key of either form: `path` is undefined where the key has no wildcard. */
export type Handler<E extends HttpEvent = HttpEvent> = (event: E, path: string | undefined) => HandlerAnswer;

/** Answers requests under a key without wildcard. */
export type ExactHandler<E extends HttpEvent = HttpEvent> = (event: E, path: undefined) => HandlerAnswer;

/** Answers requests under a key with wildcard: `path` is the decoded part that it stands for, without leading slash. */
export type WildcardHandler<E extends HttpEvent = HttpEvent> = (event: E, path: string) => HandlerAnswer;

/**
 * Decides about a client that asks for a websocket. `event.accept()` gives the connection; a handler that does not
 * accept answers as any other does (contract, part 4): a number refuses, nothing at all asks the next route of the method `WS`.
 * After `accept` the value means nothing, and what is thrown closes the connection with 1011.
 */
export type WebSocketHandler = Handler<WebSocketEvent>;

/** The event that handlers of a key get. */
export type EventOf<K extends string> = K extends "WS" | `WS ${string}` ? WebSocketEvent : HttpEvent;

/** The handler that a key takes; of a key that the compiler does not know whole, either of them. */
export type HandlerOf<K extends string> = string extends K
  ? Handler | ExactHandler | WildcardHandler
  : K extends RouteKey
    ? K extends WildcardKey
      ? WildcardHandler<EventOf<K>>
      : object extends Record<K, unknown>
        ? Handler<EventOf<K>> | ExactHandler<EventOf<K>> | WildcardHandler<EventOf<K>>
        : ExactHandler<EventOf<K>>
    : "A route key is METHOD, METHOD /path or METHOD /path/*";

/** Route key to handler; a value that is not a function is answered as if a handler had returned it. */
export type Routes<K extends string> = {
  [Key in K]?: HandlerOf<Key> | (Key extends RouteKey ? HandlerResult : undefined);
};

/**
 * Routes that are put together while the module runs: `const route: RouteTable = {}`, then for each name
 * ``route[`GET /${name}`] = handler``. A `Record<string, Handler>` is taken, too; the host checks its keys.
 */
export type RouteTable = Routes<RouteKey>;
