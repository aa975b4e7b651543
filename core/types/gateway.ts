/** What `module.depends("http_gateway")` gives: content by its CID, served by any module. */
import type { HttpEvent } from "./exchange.ts";
import type { MiddlewareFunction } from "./middleware.ts";
import type { WildcardHandler } from "./routes.ts";

/** A path such as `/ipfs/CID` or `/ipns/NAME/docs`, or a function that gives one for each request. */
export type GatewayPath = string | ((event: HttpEvent) => string | Promise<string>);

/** How content of a module is served. */
export interface ServeCidOptions {
  /** Ask peers for what is not on this machine. Default: as the option `gateway_no_fetch` has it. */
  readonly fetch?: boolean;
}

/** Serves what a path leads to, and all below it, as the gateway does: with ranges, conditions, pages, forms and errors. */
export interface HttpGateway {
  /**
   * A handler for a route with a wildcard, such as `GET /docs/*`: what the wildcard stands for is followed below `path`. Give
   * it to the routes of GET and HEAD; those of other methods answer 405 with it.
   *
   * @throws {HttpError} 400 for a path that is none, where it is given as text
   */
  serve_cid(path: GatewayPath, options?: ServeCidOptions): WildcardHandler;
  /** The same as Koa middleware: it answers GET and HEAD, and leaves other methods to the next. */
  koa(path: GatewayPath, options?: ServeCidOptions): MiddlewareFunction;
}
