import type Koa from "koa";
import type { RequestCounting } from "./lifecycle/request_counts.ts";
import type { DescribedLayer, LayerInfo, MiddlewareLayer } from "./middleware/layer.ts";
import type { RouteInfo } from "./routing/route.ts";
import type { Explanation, HttpService } from "./service.ts";
import type { HttpSettings } from "./settings.ts";

/** The interface that `module.depends<HttpModule>("http")` and `host.exports("http")` return. */
export interface HttpModule {
  /** Every route that is served, host by host. */
  routes(): RouteInfo[];
  /**
   * Explains which response a request would get, and why. `authority`: the host name in the
   * request.
   */
  explain(method: string, path: string, authority?: string): Explanation;
  /** The middleware that runs before the apps, the outermost first, with its counters. */
  middleware(): LayerInfo[];
  /** The middleware that runs before the apps, with the description of each layer. */
  describeMiddleware(): DescribedLayer[];
  /** Apps that may claim a request before the routes are tried. */
  claimants(): Pick<RouteInfo, "app" | "module">[];
  /** Requests in progress, one line each, such as `GET /path (3 s)`, the oldest first. */
  active(): string[];
  /** Counts requests by route, once for all modules, while any loaded module uses the counts. */
  readonly counts: RequestCounting;
  /**
   * Requests that began more than `seconds` ago and do not end by themselves when the server stops.
   */
  lasting(seconds: number): string[];
  /**
   * Asks clients to move to new connections: each HTTP/1 connection is closed with its next
   * response. Requests are still served. The returned function undoes this.
   */
  leave(): () => void;
  /**
   * Lists the requests of another module's service among `active`, until the returned function is
   * called.
   */
  include(service: HttpService): () => void;
  /** The Koa application of all request contexts, for middleware that needs an application. */
  readonly koa: Koa;
  /**
   * Calls `mount` with the middleware before the apps, now and after each change, so that services
   * of other modules can use it too. The returned function ends that.
   */
  watchMiddleware(mount: (layers: readonly MiddlewareLayer[]) => void): () => void;
  /** The settings from its options, for services of other modules that use the same limits. */
  readonly settings: HttpSettings;
}
