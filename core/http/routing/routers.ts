/**
 * Lists, explains and counts the routes of `@koa/router` routers that providers use as middleware,
 * like the host's own routes.
 */
import type { Context } from "koa";
import type { MiddlewareRouter } from "../../types.ts";
import { isRouter } from "../middleware/koa.ts";
import type { Route, RouteInfo } from "./route.ts";

type Layer = MiddlewareRouter["stack"][number];

/** Returns a route, and the routes of its router. */
export function withRouter(route: Route): RouteInfo[] {
  const { middleware } = route.mount.provider;
  const isBehind = route.kind === "middleware" && isRouter(middleware);
  return [infoOf(route), ...(isBehind ? middleware.stack.flatMap((layer) => rowsOf(route, layer)) : [])];
}

/**
 * Returns the routes that serve a method and path: the matching routes of the router, or else the
 * route itself.
 */
export function matchedBy(route: Route, method: string, path: string): RouteInfo[] {
  const { middleware } = route.mount.provider;
  if (route.kind !== "middleware" || !isRouter(middleware)) return [infoOf(route)];
  const { pathAndMethod } = middleware.match(path.slice(route.prefix.length) || "/", method);
  const rows = pathAndMethod.filter(hasMethods).map((layer) => rowOf(route, layer, method));
  return rows.length === 0 ? [infoOf(route)] : rows;
}

/**
 * Returns the name of a request's route in metrics and traces: the matching route of the router, if
 * there is one.
 */
export function keyOf(route: Route | undefined, request: { readonly method: string; readonly context: Context }) {
  if (route?.kind !== "middleware") return route?.key;
  const { _matchedRoute: matched } = request.context;
  return matched === undefined ? route.key : `${request.method} ${route.prefix}${matched}`;
}

/** Leaves out HEAD, which routers add to each GET. */
function rowsOf(route: Route, layer: Layer): RouteInfo[] {
  const methods = layer.methods.filter((method) => method !== "HEAD" || !layer.methods.includes("GET"));
  return methods.map((method) => rowOf(route, layer, method));
}

/** Layers without methods are middleware of the router. */
function hasMethods({ methods }: Layer): boolean {
  return methods.length > 0;
}

function rowOf(route: Route, { path }: Layer, method: string): RouteInfo {
  return { ...infoOf(route), method, path: `${route.prefix}${path}` };
}

function infoOf({ method, path, host, app, module, kind }: Route): RouteInfo {
  return { method, path, host, app, module, kind };
}
