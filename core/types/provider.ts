/** The items of `module.provides("http", ...)` (contract, part 2). */

import type { HttpRequest } from "./exchange.ts";
import type { Middleware } from "./middleware.ts";
import type { TokenNeed } from "./presented_token.ts";
import type { Handler, RouteKey, Routes } from "./routes.ts";
import type { WebSocketSettings } from "./websocket.ts";

/**
 * Headers for responses that lack them, such as `{ content_type: "text/plain; charset=utf-8" }`.
 */
export interface DefaultHeaders {
  /** For handler responses that have a body. Middleware and error pages set their own types. */
  readonly content_type?: string | undefined;
  /** `nosniff`, for all responses: browsers use the content type and nothing else. */
  readonly x_content_type_options?: string | undefined;
}

/** The token that an app requires from its callers. */
export type AppAuth = "token" | { readonly scope?: string } | { readonly need: TokenNeed };

/**
 * An app: the item of `module.provides("http", ...)`. `K` are the keys of its routes, where they
 * are known.
 */
export interface HttpProvider<K extends string = RouteKey> extends AppSettings {
  /**
   * Handlers by route key. A value that is not a function is sent as if a handler had returned it.
   */
  readonly route: Readonly<Routes<K>>;
  /** Called when none of these routes responds; see MiddlewareProvider. */
  readonly middleware?: Middleware;
}

/** An app of Koa middleware, with or without routes before it. */
export interface MiddlewareProvider<K extends string = RouteKey> extends AppSettings {
  /**
   * A Koa middleware function, a list of them, a Koa application, or a router of @koa/router. It is
   * called for every path of the app to which no route responds. Routes of a router are listed and
   * counted one by one. It reads the request body itself, up to `http_max_content_size`, or without
   * limit with `streaming_uploads`.
   */
  readonly middleware: Middleware;
  readonly route?: Readonly<Routes<K>>;
}

interface AppSettings {
  /** Overrides the app name (discouraged). */
  readonly name?: string;
  /**
   * The option with which the operator has chosen `name`: the host does not warn about the name
   * then.
   */
  readonly name_option?: string;
  /** Replaces `/<app-name>`; the option `http_paths` takes precedence over it. */
  readonly default_path?: string;
  /** Handlers are called before the body is read, and take it from `request.body_stream`. */
  readonly streaming_uploads?: boolean;
  /**
   * Seconds that a client may pause while a handler takes its body from `request.body_stream`: for
   * uploads whose source is slow. Default: `http_progress_timeout`, which applies if it is longer.
   */
  readonly upload_pause?: number;
  /**
   * Handlers pass requests on to other servers and return their responses: bodies may have any
   * content coding, and the host does not warn about responses without a content type. Requires
   * `streaming_uploads`.
   */
  readonly relays?: boolean;
  /** Priority among routes of other apps that match equally well. Default 0. */
  readonly priority?: number;
  /**
   * Requests need a token of the server in `Authorization: Bearer`: one with the scope `app:NAME`,
   * where NAME is the app's name or `scope`; or one that grants `need`, of a kind that a module
   * declares with `provides("token-scope", ...)`. Without a token the response is 401, with a token
   * that lacks the scope 403, and no handler is called.
   */
  readonly auth?: AppAuth;
  readonly cors?: CorsSettings;
  /**
   * Headers for responses of this app that lack them; the option `http_default_headers` takes
   * precedence for the app.
   */
  readonly default_headers?: DefaultHeaders;
  /** Rules for routes of the method `WS`. */
  readonly websocket?: WebSocketSettings;
  /**
   * Called for each request before the routes of all apps. If it returns a handler, that handler
   * gets the request, whatever its path; undefined leaves the request to the routes. It is for apps
   * that serve hosts which nobody can list, such as `ANYTHING.site.example`: requests for hosts
   * that are not configured are included. Websockets to claimed requests are refused. It must be
   * fast, since every request waits for it.
   */
  readonly claims?: (request: HttpRequest) => Handler | undefined | Promise<Handler | undefined>;
  /**
   * Clients may use the server as a proxy: `CONNECT host:port` over plain HTTP/1.1 gets a 200, and
   * requests in the tunnel are served here, whatever host was named. Nothing is forwarded. Without
   * it such connections are closed.
   */
  readonly tunnels?: boolean;
}

export interface CorsSettings {
  readonly enabled?: boolean;
  readonly credentials?: boolean;
  /** Origins that may read responses; "*" is any. */
  readonly origins?: readonly string[] | "*";
  /**
   * Request headers that are allowed in addition to Content-Type (true), or no longer allowed
   * (false).
   */
  readonly headers?: Readonly<Record<string, boolean>>;
}
