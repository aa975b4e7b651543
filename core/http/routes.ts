import { createRequire } from "node:module";
import type KoaRouter from "@koa/router";
import type { Handler, HandlerResult, HttpProvider, MiddlewareProvider, Module } from "../types.ts";
import type { CorsPolicy } from "./cors.ts";
import { type ParsedKey, parseRouteKeys } from "./keys.ts";
import { middlewareHandler } from "./middleware.ts";
import type { OriginPolicy } from "./origins.ts";
import { decodePath } from "./paths.ts";
import { websocketMethod } from "./upgrade.ts";

export interface MountPlace {
  readonly name: string;
  /** A name from `hosts`, or "*" for all. */
  readonly host: string;
  /** "" for an app at the root, else `/name` without a trailing slash. */
  readonly base: string;
  readonly owner: Module;
  readonly provider: HttpProvider | MiddlewareProvider;
  readonly cors: CorsPolicy | undefined;
  /** Other sites whose pages may open websockets. */
  readonly origins?: OriginPolicy | undefined;
}

// The form of it that does not import `node:http`: see `node_http.ts`.
const Router = createRequire(import.meta.url)("@koa/router") as typeof KoaRouter;

let mounted = 0;

/** A provider put at its place: what the route table is built from. Knows the requests that it is answering. */
export class AppMount implements MountPlace {
  readonly name: string;
  readonly host: string;
  readonly base: string;
  readonly owner: Module;
  readonly provider: HttpProvider | MiddlewareProvider;
  readonly cors: CorsPolicy | undefined;
  readonly origins: OriginPolicy | undefined;
  readonly routes: AppRoutes;
  /** Requests that reached one of its handlers and are not over. */
  readonly active = new Set<ActiveRequest>();
  /** Its place in the order of loading. */
  readonly sequence = ++mounted;
  /** True once its module is leaving: requests that began before pass it over. */
  retired = false;
  /** What its websockets are closed with then: going away, or service restart (1012). */
  closeCode = 1001;
  #idle: (() => void) | undefined;

  /** @throws {ModhostError} ROUTE_INVALID, MIDDLEWARE_INVALID */
  constructor(place: MountPlace) {
    this.name = place.name;
    this.host = place.host;
    this.base = place.base;
    this.owner = place.owner;
    this.provider = place.provider;
    this.cors = place.cors;
    this.origins = place.origins;
    this.routes = new AppRoutes(this);
  }

  leave(request: ActiveRequest): void {
    this.active.delete(request);
    if (this.active.size === 0) this.#idle?.();
  }

  /** Resolves when the last request is over; those still there after `grace` seconds are cut off. */
  async retire(grace: number, closeCode = 1001): Promise<void> {
    this.retired = true;
    this.closeCode = closeCode;
    for (const request of [...this.active]) request.retire();
    if (this.active.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        for (const request of [...this.active]) request.cut();
        resolve();
      }, grace * 1000);
      this.#idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

export interface ActiveRequest {
  /** Tells what answers the request that its module leaves. */
  retire(): void;
  /** Ends the request at once, whatever its answer has come to. */
  cut(): void;
}

/** A route that matches a request; candidates are tried one after the other (spec 4). */
export interface Candidate {
  readonly route: Route;
  /** The wildcard argument; undefined for an exact route. */
  readonly argument: string | undefined;
}

/** What the table knows of one method and path. */
export interface Resolution {
  /** The decoded path. */
  readonly path: string;
  readonly candidates: readonly Candidate[];
  /** One of the candidates is a route of this method: not only middleware, which is asked for every method. */
  readonly routed: boolean;
  /** Methods routed on the path, sorted, with HEAD beside GET; empty when the path is not routed at all. */
  readonly allowed: readonly string[];
  /** The path is routed for websockets, too. */
  readonly upgradable: boolean;
  /** Of the first app that matches, whatever the method. */
  readonly cors: CorsPolicy | undefined;
}

export interface RouteInfo {
  /** "*" of middleware. */
  readonly method: string;
  /** Full path, with the final `/*` of a wildcard. */
  readonly path: string;
  readonly host: string;
  readonly app: string;
  readonly module: string;
  readonly kind: "exact" | "wildcard" | "redirect" | "middleware";
}

/** One route of one app. */
export interface Route extends RouteInfo {
  readonly mount: AppMount;
  readonly handler: Handler | Exclude<HandlerResult, undefined>;
  /** Path as matched: base and key, without the star. */
  readonly prefix: string;
  /** Its place among the routes of the app. */
  readonly order: number;
}

/** Longer paths and methods are matched each time; the memory of matches stays bounded. */
const memoPathLength = 256;
const memoMethodLength = 16;
const memoEntries = 4096;

/**
 * All routes of the server as one immutable value. Built aside from the mounted apps and swapped in whole; a request
 * keeps the table it began with.
 */
export class RouteTable {
  readonly #hosts = new Map<string, HostRoutes>();
  readonly #everywhere: HostRoutes;

  constructor(mounts: readonly AppMount[]) {
    const apps = mounts.map(({ routes }) => routes);
    const shared = apps.filter((app) => app.mount.host === "*");
    this.#everywhere = new HostRoutes([shared]);
    for (const host of new Set(mounts.map((mount) => mount.host))) {
      if (host !== "*") this.#hosts.set(host, new HostRoutes([shared, apps.filter((app) => app.mount.host === host)]));
    }
  }

  /** Matches a raw path; undefined when it climbs above the root. */
  resolve(host: string, method: string, rawPath: string): Resolution | undefined {
    return (this.#hosts.get(host) ?? this.#everywhere).resolve(method, rawPath);
  }

  list(): RouteInfo[] {
    const all = [this.#everywhere, ...this.#hosts.values()].flatMap((host) => host.list());
    return [...new Set(all)].map(({ method, path, host, app, module, kind }) => ({
      method,
      path,
      host,
      app,
      module,
      kind,
    }));
  }
}

/** Routes of one virtual host: groups of apps, those of the whole server before its own. */
class HostRoutes {
  readonly #groups: readonly ReadonlyMap<string, readonly AppRoutes[]>[];
  /** By method and raw path. */
  readonly #memo = new Map<string, Map<string, Resolution>>();
  #remembered = 0;

  constructor(groups: readonly (readonly AppRoutes[])[]) {
    this.#groups = groups.map((apps) => Map.groupBy(apps, (app) => app.mount.base));
  }

  list(): Route[] {
    return this.#groups.flatMap((group) => [...group.values()].flat().flatMap((app) => app.routes));
  }

  resolve(method: string, rawPath: string): Resolution | undefined {
    let memo = this.#memo.get(method);
    const remembered = memo?.get(rawPath);
    if (remembered !== undefined) return remembered;
    const path = decodePath(rawPath);
    if (path === undefined) return undefined;
    const resolution = this.#match(method, path);
    if (rawPath.length <= memoPathLength && method.length <= memoMethodLength) {
      if (this.#remembered >= memoEntries) {
        this.#memo.clear();
        this.#remembered = 0;
        memo = undefined;
      }
      if (memo === undefined) this.#memo.set(method, (memo = new Map()));
      memo.set(rawPath, resolution);
      this.#remembered += 1;
    }
    return resolution;
  }

  #match(method: string, path: string): Resolution {
    const candidates: Candidate[] = [];
    const methods = new Set<string>();
    let cors: CorsPolicy | undefined;
    for (const group of this.#groups) {
      const found: Route[] = [];
      for (const base of basesOf(path)) {
        for (const app of group.get(base) ?? []) {
          const matched = app.match(path, method);
          if (matched.reached) cors ??= app.mount.cors;
          for (const allowed of matched.methods) methods.add(allowed);
          // Middleware speaks HTTP only.
          found.push(...matched.routes.filter(({ kind }) => kind !== "middleware" || method !== websocketMethod));
        }
      }
      found.sort(byPrecedence);
      // A HEAD route serves HEAD before any GET route does.
      if (method === "HEAD") found.sort((a, b) => Number(b.method === "HEAD") - Number(a.method === "HEAD"));
      for (const route of found) candidates.push({ route, argument: argumentOf(route, path) });
    }
    const upgradable = methods.delete(websocketMethod);
    // A websocket begins as a GET.
    if (upgradable) methods.add("GET");
    if (methods.has("GET")) methods.add("HEAD");
    const routed = candidates.some(({ route }) => route.kind !== "middleware");
    return { path, candidates, routed, allowed: [...methods].sort(), upgradable, cors };
  }
}

/**
 * Exact before wildcard, a redirect between them; longer wildcards first; then priority, then the order of loading.
 * Middleware is a wildcard at the base of its app, after the app's own.
 */
function byPrecedence(a: Route, b: Route): number {
  return (
    rank[a.kind] - rank[b.kind] ||
    b.prefix.length - a.prefix.length ||
    (b.mount.provider.priority ?? 0) - (a.mount.provider.priority ?? 0) ||
    a.mount.sequence - b.mount.sequence ||
    a.order - b.order
  );
}

const rank = { exact: 0, redirect: 1, wildcard: 2, middleware: 2 } as const;

function argumentOf(route: Route, path: string): string | undefined {
  return isOpen(route) ? path.slice(route.prefix.length + 1) : undefined;
}

/** Does the route match whatever is below its prefix, too? */
function isOpen({ kind }: Route): boolean {
  return kind === "wildcard" || kind === "middleware";
}

/** The bases under which an app could serve the path: "", "/a", "/a/b" for "/a/b". */
function* basesOf(path: string): Generator<string> {
  yield "";
  for (let at = path.indexOf("/", 1); at > 0; at = path.indexOf("/", at + 1)) yield path.slice(0, at);
  if (path.length > 1 && !path.endsWith("/")) yield path;
}

/**
 * The routes of one mounted app, matched by a strict, case-sensitive router with escaped keys. Compiled once: tables
 * come and go more often.
 */
class AppRoutes {
  readonly mount: AppMount;
  readonly routes: readonly Route[];
  readonly #router = new Router({ strict: true, sensitive: true });
  readonly #byLayer = new Map<unknown, Route>();

  constructor(mount: AppMount) {
    this.mount = mount;
    const given = mount.provider.route ?? {};
    const handlers = Object.values(given) as Route["handler"][];
    const keys = parseRouteKeys(Object.keys(given), mount.name);
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
        const moved = { ...route, prefix, path: prefix };
        // Clients that open a websocket follow no redirect.
        if (route.method === websocketMethod) return { ...moved, order: routes.length + route.order };
        return { ...moved, kind: "redirect" as const };
      });
  }
}

function pattern(route: Route): RegExp {
  const literal = RegExp.escape(route.prefix);
  return isOpen(route) ? new RegExp(`^${literal}(?:/.*)?$`, "s") : new RegExp(`^${literal}$`, "s");
}
