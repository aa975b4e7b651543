/** What a module gives to `module.provides("http", ...)` (contract, part 2). */

import type { HttpRequest } from "./exchange.ts";
import type { Middleware } from "./middleware.ts";
import type { Handler, RouteKey, Routes } from "./routes.ts";
import type { WebSocketSettings } from "./websocket.ts";

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
  /** The option in which the operator has chosen `name`: nobody is warned of it then. */
  readonly name_option?: string;
  /** Replaces `/<app-name>`; the option `http_paths` goes before it. */
  readonly default_path?: string;
  /** Handlers are called before the body is read and take it from `request.body_stream`. */
  readonly streaming_uploads?: boolean;
  /**
   * Seconds that a client may pause while a handler takes its body from `request.body_stream`: for uploads whose source is slow.
   * Default: `http_progress_timeout`, which holds where it is longer.
   */
  readonly upload_pause?: number;
  /**
   * Handlers pass requests on to other servers, and their answers back: bodies come in any content coding, and nobody is
   * advised of answers without a content type. With `streaming_uploads`.
   */
  readonly relays?: boolean;
  /** Priority among routes of other apps that match equally well. Default 0. */
  readonly priority?: number;
  /**
   * Requests need a token of the server, in `Authorization: Bearer`: one with the scope `app:NAME`, where the name is the
   * app's, or `scope`. Without one they are answered 401, with a token that lacks the scope 403, before any handler is called.
   */
  readonly auth?: "token" | { readonly scope?: string };
  readonly cors?: CorsSettings;
  /** Headers for answers of this app that lack them; the option `http_default_headers` goes before it for the app. */
  readonly default_headers?: DefaultHeaders;
  /** Rules for routes of the method `WS`. */
  readonly websocket?: WebSocketSettings;
  /**
   * Asked for each request before the routes of all apps: a handler takes it, whatever its path, and undefined leaves it
   * to them. For apps that answer hosts that nobody can list, such as `ANYTHING.site.example`: requests for hosts that are
   * not configured come here, too. Websockets to what is taken are refused. Quick, since every request waits for it.
   */
  readonly claims?: (request: HttpRequest) => Handler | undefined | Promise<Handler | undefined>;
  /**
   * Clients may take the server for a proxy: `CONNECT host:port` over plain HTTP/1.1 is answered with 200, and requests
   * in the tunnel are served here, whatever host was named. Nothing is forwarded. Without it such connections are closed.
   */
  readonly tunnels?: boolean;
}

export interface CorsSettings {
  readonly enabled?: boolean;
  readonly credentials?: boolean;
  /** Origins that may read answers; "*" is any. */
  readonly origins?: readonly string[] | "*";
  /** Request headers allowed beyond Content-Type (true) or taken away (false). */
  readonly headers?: Readonly<Record<string, boolean>>;
}
