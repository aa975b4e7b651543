import { createRequire } from "node:module";
import type KoaRouter from "@koa/router";
import type { Handler } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { isThenable } from "./answer.ts";
import { faultOf } from "./answer_fault.ts";
import { type ParsedKey, parseRouteKeys } from "./keys.ts";
import { middlewareHandler } from "./middleware.ts";
import { isOpen, type Mount, type Route } from "./route.ts";
import { websocketMethod } from "./upgrade.ts";

// The form of it that does not import `node:http`: see `node_http.ts`.
const Router = createRequire(import.meta.url)("@koa/router") as typeof KoaRouter;

/**
 * The routes of one mounted app, matched by a strict, case-sensitive router with escaped keys. Compiled once: tables
 * come and go more often.
 */
export class AppRoutes {
  readonly mount: Mount;
  readonly routes: readonly Route[];
  readonly #router = new Router({ strict: true, sensitive: true });
  readonly #byLayer = new Map<unknown, Route>();

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
      // Base and below, for every method, after all routes of the app.
      const key: ParsedKey = { method: "*", path: "", wildcard: true };
      routes.push({ ...this.#route(key, middleware as Route["handler"], routes.length), kind: "middleware" });
    }
    for (const route of routes) {
      const methods = route.kind === "middleware" ? [] : [route.method];
      this.#byLayer.set(
        this.#router.register(pattern(route), methods, () => {}, { pathAsRegExp: true }),
        route,
      );
    }
    this.routes = routes;
  }

  /** Of what the app takes by its host, whatever the path. */
  claimed(handler: Handler, method: string): Route {
    return {
      ...this.#route({ method, path: "", wildcard: true }, handler, 0),
      path: "/*",
      key: `${method} /*`,
      prefix: "",
    };
  }

  match(path: string, method: string): { routes: Route[]; methods: string[]; reached: boolean } {
    const matched = this.#router.match(path, method);
    const routesOf = (layers: readonly unknown[]) =>
      layers.map((layer) => this.#byLayer.get(layer)).filter((route) => route !== undefined);
    const methods = routesOf(matched.path)
      .filter((route) => route.kind !== "middleware")
      .map((route) => route.method);
    return { routes: routesOf(matched.pathAndMethod), methods, reached: matched.path.length > 0 };
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

  /** `GET /a/` also answers `/a`, where no other route does, by pointing to itself; `WS /a/` serves it. */
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

/** @throws {ModhostError} ROUTE_INVALID naming each route whose value is neither a handler nor an answer */
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
