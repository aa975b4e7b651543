import type Koa from "koa";
import type { DescribedLayer, LayerInfo, MiddlewareLayer } from "./layer.ts";
import type { RequestCounting } from "./request_counts.ts";
import type { RouteInfo } from "./route.ts";
import type { Explanation, HttpService } from "./service.ts";
import type { HttpSettings } from "./settings.ts";

/** What `module.depends<HttpModule>("http")` gives, and `host.exports("http")`. */
export interface HttpModule {
  /** Every route that is served, host by host. */
  routes(): RouteInfo[];
  /** How a request would be answered, and why; `authority` is the host name that it gives. */
  explain(method: string, path: string, authority?: string): Explanation;
  /** The middleware before apps, the outermost first, with what it has done so far. */
  middleware(): LayerInfo[];
  /** The same, with what each tells people of itself. */
  describeMiddleware(): DescribedLayer[];
  /** Apps that are asked before all routes whether they take a request. */
  claimants(): Pick<RouteInfo, "app" | "module">[];
  /** What is being answered: a line each, such as `GET /path (3 s)`, the oldest first. */
  active(): string[];
  /** Requests by route: counted, once for all, while any module that has asked for them is loaded. */
  readonly counts: RequestCounting;
  /** Those that began more than so many seconds ago, and do not end by being told that the server stops. */
  lasting(seconds: number): string[];
  /**
   * Everything is answered on, and clients are asked to go on by other connections: each of HTTP/1 is closed with its next
   * answer. What is returned ends it.
   */
  leave(): () => void;
  /** What a service of another module answers is told among `active`, until what is returned is called. */
  beside(service: HttpService): () => void;
  /** The application whose contexts all requests have: for middleware that is to be made for one. */
  readonly koa: Koa;
  /**
   * For services of other modules that shall have the middleware before apps, too: tells it now and after each change,
   * until what is returned is called.
   */
  watchMiddleware(mount: (layers: readonly MiddlewareLayer[]) => void): () => void;
  /** What it was told by its options, for services of other modules that shall have the same limits. */
  readonly settings: HttpSettings;
}
