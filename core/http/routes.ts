import Router from "@koa/router";
import type { Handler, HandlerResult, HttpProvider, Module } from "../types.ts";
import type { CorsPolicy } from "./cors.ts";
import { type ParsedKey, parseRouteKey } from "./keys.ts";
import { decodePath } from "./paths.ts";

export interface MountPlace {
  readonly name: string;
  /** A name from `hosts`, or "*" for all. */
  readonly host: string;
  /** "" for an app at the root, else `/name` without a trailing slash. */
  readonly base: string;
  readonly owner: Module;
  readonly provider: HttpProvider;
  readonly cors: CorsPolicy | undefined;
}

let mounted = 0;

/** A provider put at its place: what the route table is built from. Knows the requests that it is answering. */
export class AppMount implements MountPlace {
  readonly name: string;
  readonly host: string;
  readonly base: string;
  readonly owner: Module;
  readonly provider: HttpProvider;
  readonly cors: CorsPolicy | undefined;
  /** Requests that reached one of its handlers and are not over. */
  readonly active = new Set<ActiveRequest>();
  /** Its place in the order of loading. */
  readonly sequence = ++mounted;
  /** True once its module is leaving: requests that began before pass it over. */
  retired = false;
  #idle: (() => void) | undefined;

  constructor(place: MountPlace) {
    this.name = place.name;
    this.host = place.host;
    this.base = place.base;
    this.owner = place.owner;
    this.provider = place.provider;
    this.cors = place.cors;
  }

  leave(request: ActiveRequest): void {
    this.active.delete(request);
    if (this.active.size === 0) this.#idle?.();
  }

  /** Resolves when the last request is over; those still there after `grace` seconds are cut off. */
  async retire(grace: number): Promise<void> {
    this.retired = true;
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
  /** Methods routed on the path, sorted, with HEAD beside GET; empty when the path is not routed at all. */
  readonly allowed: readonly string[];
  /** Of the first app that matches, whatever the method. */
  readonly cors: CorsPolicy | undefined;
}

export interface RouteInfo {
  readonly method: string;
  /** Full path, with the final `/*` of a wildcard. */
  readonly path: string;
  readonly host: string;
  readonly app: string;
  readonly module: string;
  readonly kind: "exact" | "wildcard" | "redirect";
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

  /** `fault` hears, once for each mount, of route keys that cannot be served; the others are. */
  constructor(mounts: readonly AppMount[], fault: (mount: AppMount, error: Error) => void) {
    const apps = mounts.map((mount) => routesOf(mount, fault));
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
          if (matched.methods.length > 0) cors ??= app.mount.cors;
          for (const allowed of matched.methods) methods.add(allowed);
          found.push(...matched.routes);
        }
      }
      found.sort(byPrecedence);
      // A HEAD route serves HEAD before any GET route does.
      if (method === "HEAD") found.sort((a, b) => Number(b.method === "HEAD") - Number(a.method === "HEAD"));
      for (const route of found) candidates.push({ route, argument: argumentOf(route, path) });
    }
    if (methods.has("GET")) methods.add("HEAD");
    return { path, candidates, allowed: [...methods].sort(), cors };
  }
}

/** Exact before wildcard, a redirect between them; longer wildcards first; then priority, then the order of loading. */
function byPrecedence(a: Route, b: Route): number {
  return (
    rank[a.kind] - rank[b.kind] ||
    b.prefix.length - a.prefix.length ||
    (b.mount.provider.priority ?? 0) - (a.mount.provider.priority ?? 0) ||
    a.mount.sequence - b.mount.sequence ||
    a.order - b.order
  );
}

const rank = { exact: 0, redirect: 1, wildcard: 2 } as const;

function argumentOf(route: Route, path: string): string | undefined {
  return route.kind === "wildcard" ? path.slice(route.prefix.length + 1) : undefined;
}

/** The bases under which an app could serve the path: "", "/a", "/a/b" for "/a/b". */
function* basesOf(path: string): Generator<string> {
  yield "";
  for (let at = path.indexOf("/", 1); at > 0; at = path.indexOf("/", at + 1)) yield path.slice(0, at);
  if (path.length > 1 && !path.endsWith("/")) yield path;
}

const compiled = new WeakMap<AppMount, AppRoutes>();

/** A mount's routes, compiled once: tables come and go more often. */
function routesOf(mount: AppMount, fault: (mount: AppMount, error: Error) => void): AppRoutes {
  let routes = compiled.get(mount);
  if (routes === undefined) compiled.set(mount, (routes = new AppRoutes(mount, fault)));
  return routes;
}

/** The routes of one mounted app, matched by a strict, case-sensitive router with escaped keys. */
class AppRoutes {
  readonly mount: AppMount;
  readonly routes: readonly Route[];
  readonly #router = new Router({ strict: true, sensitive: true });
  readonly #byLayer = new Map<unknown, Route>();

  constructor(mount: AppMount, fault: (mount: AppMount, error: Error) => void) {
    this.mount = mount;
    const routes: Route[] = [];
    for (const [order, [key, handler]] of Object.entries(mount.provider.route).entries()) {
      try {
        const parsed = parseRouteKey(key, mount.name);
        routes.push(this.#route(parsed, handler as Route["handler"], order));
      } catch (error) {
        fault(mount, error as Error);
      }
    }
    routes.push(...this.#slashRedirects(routes));
    for (const route of routes)
      this.#byLayer.set(
        this.#router.register(pattern(route), [route.method], () => {}, { pathAsRegExp: true }),
        route,
      );
    this.routes = routes;
  }

  match(path: string, method: string): { routes: Route[]; methods: string[] } {
    const matched = this.#router.match(path, method);
    const routesOf = (layers: readonly unknown[]) =>
      layers.map((layer) => this.#byLayer.get(layer)).filter((route) => route !== undefined);
    return { routes: routesOf(matched.pathAndMethod), methods: routesOf(matched.path).map((route) => route.method) };
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

  /** `GET /a/` also answers `/a`, where no other route does, by pointing to itself. */
  #slashRedirects(routes: readonly Route[]): Route[] {
    return routes
      .filter((route) => route.kind === "exact" && route.prefix.endsWith("/") && route.prefix.length > 1)
      .map((route) => {
        const prefix = route.prefix.slice(0, -1);
        return { ...route, kind: "redirect" as const, prefix, path: prefix };
      });
  }
}

function pattern(route: Route): RegExp {
  const literal = RegExp.escape(route.prefix);
  return route.kind === "wildcard" ? new RegExp(`^${literal}(?:/.*)?$`, "s") : new RegExp(`^${literal}$`, "s");
}
