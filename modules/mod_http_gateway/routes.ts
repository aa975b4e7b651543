/** The routes of a path gateway. */
import { httpMethods } from "../../core/http/index.ts";
import type { Handler, HttpEvent, RouteTable } from "../../core/types.ts";
import type { Gateway } from "./gateway.ts";
import { targetOfPath } from "./request/path.ts";

/** Routes for all methods, so that the gateway itself refuses unsupported ones. */
export function pathRoutes(gateway: Gateway): RouteTable {
  const route: RouteTable = {};
  for (const namespace of ["ipfs", "ipns"] as const) {
    const handler: Handler = (event: HttpEvent, rest = "") =>
      gateway.respond(event, (request) => targetOfPath(namespace, rest, request));
    for (const method of httpMethods) route[`${method} /${namespace}/*`] = handler;
  }
  return route;
}
