import { createRequire } from "node:module";
import type KoaRouter from "@koa/router";
import type { Handler } from "../../types.ts";
import { ModhostError } from "../../util/errors.ts";
import { websocketMethod } from "../connection/upgrade.ts";
import { faultOf, isThenable } from "../message/handler_result.ts";
import { basesOf, longestOf } from "../message/paths.ts";
import { middlewareHandler } from "../middleware/middleware.ts";
import { type ParsedKey, parseRouteKeys } from "./keys.ts";
import { isOpen, type Mount, type Route, reachesBelow } from "./route.ts";

// This form of the router does not import `node:http`: see `node_http.ts`.
const Router = createRequire(import.meta.url)("@koa/router") as typeof KoaRouter;

type Layer = KoaRouter["stack"][number];

/**
 * The routes of one mounted app, matched by a strict, case-sensitive router with escaped keys. The
 * router tries its routes one by one, so it gets only those that can match a path: the routes of
 * exactly this path, and those of everything below one of its parents.
 */
export class AppRoutes {
  readonly mount: Mount;
  readonly routes: readonly Route[];
  readonly #router = new Router({ strict: true, sensitive: true });
  /** Routes that match one path, by that path. */
  readonly #exact: ReadonlyMap<string, readonly Route[]>;
  /** Routes that match everything below their prefix, by that prefix. */
  readonly #below: ReadonlyMap<string, readonly Route[]>;
  readonly #longestBelow: number;
  /**
   * Compiled routes. A route is compiled when a request first needs it: most of ten thousand are
   * never compiled.
   */
  readonly #layers = new Map<Route, Layer>();

  constructor(mount: Mount) {
    this.mount = mount;
    const table = mount.provider.route ?? {};
    const handlers = Object.values(table) as Route["handler"][];
    const keys = parseRouteKeys(Object.keys(table), mount.name);
    checkValues(table, mount.name);
    const routes = keys.map((key, order) => this.#route(key, handlers[order] as Route["handler"], order));
    routes.push(...this.#slashRedirects(routes));
    const middleware = middlewareHandler(mount);
    if (middleware !== undefined) {
      // Middleware matches the base and everything below, for every method, after all routes of the
      // app.
      const key: ParsedKey = { method: "*", path: "", wildcard: true };
      routes.push({ ...this.#route(key, middleware as Route["handler"], routes.length), kind: "middleware" });
    }
    this.routes = routes;
    const byPrefix = (isBelow: boolean) =>
      Map.groupBy(
        routes.filter((route) => reachesBelow(route) === isBelow),
        ({ prefix }) => prefix,
      );
    this.#exact = byPrefix(false);
    this.#below = byPrefix(true);
    this.#longestBelow = longestOf(this.#below.keys());
  }

  /** Returns the route for requests that the app claims by their host, with any path. */
  claimed(handler: Handler, method: string): Route {
    return {
      ...this.#route({ method, path: "", wildcard: true }, handler, 0),
      path: "/*",
      key: `${method} /*`,
      prefix: "",
    };
  }

  match(path: string, method: string): { routes: Route[]; methods: string[]; reached: boolean } {
    const routes = new Map(this.#candidates(path).map((route) => [this.#layerOf(route), route] as const));
    this.#router.stack = [...routes.keys()];
    const matched = this.#router.match(path, method);
    const routesOf = (layers: readonly Layer[]) => layers.map((layer) => routes.get(layer) as Route);
    const methods = routesOf(matched.path)
      .filter((route) => route.kind !== "middleware")
      .map((route) => route.method);
    return { routes: routesOf(matched.pathAndMethod), methods, reached: matched.path.length > 0 };
  }

  #candidates(path: string): Route[] {
    const found = [...(this.#exact.get(path) ?? [])];
    for (const prefix of basesOf(path, this.#longestBelow)) found.push(...(this.#below.get(prefix) ?? []));
    return found;
  }

  #layerOf(route: Route): Layer {
    let layer = this.#layers.get(route);
    if (layer === undefined) {
      const methods = route.kind === "middleware" ? [] : [route.method];
      layer = this.#router.register(pattern(route), methods, () => {}, { pathAsRegExp: true }) as Layer;
      this.#layers.set(route, layer);
    }
    return layer;
  }

  #route(key: ParsedKey, handler: Route["handler"], order: number): Route {
    const { mount } = this;
    const prefix = `${mount.base}${key.path}`;
    const path = key.wildcard ? `${prefix}/*` : prefix || "/";
    const kind = key.wildcard ? "wildcard" : "exact";
    return {
      mount,
      handler,
      order,
      kind,
      path,
      key: `${key.method} ${path}`,
      prefix: key.wildcard ? prefix : path,
      method: key.method,
      host: mount.host,
      app: mount.name,
      module: mount.owner.name,
    };
  }

  /**
   * Adds routes without the final slash: `GET /a/` redirects `/a` to itself when no other route
   * matches, and `WS /a/` serves it.
   */
  #slashRedirects(routes: readonly Route[]): Route[] {
    return routes
      .filter((route) => route.kind === "exact" && route.prefix.endsWith("/") && route.prefix.length > 1)
      .map((route) => {
        const prefix = route.prefix.slice(0, -1);
        const moved = { ...route, prefix, path: prefix, key: `${route.method} ${prefix}` };
        // Clients that open a websocket follow no redirect.
        if (route.method === websocketMethod) return { ...moved, order: routes.length + route.order };
        return { ...moved, kind: "redirect" as const };
      });
  }
}

/**
 * @throws {ModhostError} ROUTE_INVALID naming each route whose value is neither a handler nor a
 * response
 */
function checkValues(table: Readonly<Record<string, unknown>>, app: string): void {
  const faults = Object.entries(table).flatMap(([key, value]) => {
    const fault = typeof value === "function" || isThenable(value) ? undefined : faultOf(value);
    const instead = "write a function, or a value that a function may return";
    return fault === undefined
      ? []
      : [`the route ${JSON.stringify(key)} is ${fault.what}: ${instead} (${fault.remedy})`];
  });
  if (faults.length > 0) throw new ModhostError("ROUTE_INVALID", { app, faults: faults.join("; ") });
}

function pattern(route: Route): RegExp {
  const literal = RegExp.escape(route.prefix);
  return isOpen(route) ? new RegExp(`^${literal}(?:/.*)?$`, "s") : new RegExp(`^${literal}$`, "s");
}
