/** The routes of a path gateway. */
import { httpMethods } from "../../core/http/index.ts";
import type { Handler, HttpEvent, RouteTable } from "../../core/types.ts";
import type { Gateway } from "./gateway.ts";
import { placeOfPath } from "./request/path.ts";

/** All methods, so that the gateway itself refuses what it does not have. */
export function pathRoutes(gateway: Gateway): RouteTable {
  const route: RouteTable = {};
  for (const namespace of ["ipfs", "ipns"] as const) {
    const handler: Handler = (event: HttpEvent, rest = "") =>
      gateway.answer(event, (request) => placeOfPath(namespace, rest, request));
    for (const method of httpMethods) route[`${method} /${namespace}/*`] = handler;
  }
  return route;
}
