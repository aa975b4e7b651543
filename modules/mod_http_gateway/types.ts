/**
 * `import type { HttpGateway } from "modhost/http_gateway"`: content by its CID, served by any
 * module.
 */
import type { HttpEvent, MiddlewareFunction, WildcardHandler } from "../../core/types.ts";

/**
 * A path such as `/ipfs/CID` or `/ipns/NAME/docs`, or a function that returns one for each request.
 */
export type GatewayPath = string | ((event: HttpEvent) => string | Promise<string>);

/** Options for serving a module's content. */
export interface ServeCidOptions {
  /**
   * Whether to fetch missing content from peers. Default: the opposite of the option
   * `gateway_no_fetch`.
   */
  readonly fetch?: boolean;
}

/**
 * The exports of the module, as `module.depends<HttpGateway>("http_gateway")` returns them. They
 * serve the content of a path and everything below it as the gateway does: with ranges, conditions,
 * pages, formats and errors.
 */
export interface HttpGateway {
  /**
   * Returns a handler for a route with a wildcard, such as `GET /docs/*`. The part that matches the
   * wildcard is resolved below `path`. Use it for the routes of GET and HEAD; for other methods it
   * responds with 405. @throws {HttpError} 400 for an invalid path, if it is given as text
   */
  serve_cid(path: GatewayPath, options?: ServeCidOptions): WildcardHandler;
  /**
   * Works as `serve_cid`, but returns Koa middleware. It responds to GET and HEAD, and passes other
   * methods on.
   */
  koa(path: GatewayPath, options?: ServeCidOptions): MiddlewareFunction;
}
