import type { AppRoutes } from "./app_routes.ts";
import type { Claim } from "./claims.ts";
import type { CorsPolicy } from "./cors.ts";
import { type Chain, Layers, type MiddlewareLayer } from "./layer.ts";
import type { AppMount } from "./mount.ts";
import { basesOf, decodePath, longestOf, withoutDots } from "./paths.ts";
import { type Candidate, isOpen, type Route, type RouteInfo, reachesBelow } from "./route.ts";
import { websocketMethod } from "./upgrade.ts";

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
  /** Middleware that stands before the apps that are tried, or, where none is, before those that know the path. */
  readonly chain: Chain | undefined;
}

/** Longer paths and methods are matched each time; the memory of matches stays bounded. */
const MAX_REMEMBERED_PATH = 256;
const MAX_REMEMBERED_METHOD = 16;
/** Of paths that no route names, and of those that routes do where there are not more of them. */
const MAX_REMEMBERED = 4096;

/**
 * All routes of the server, as they were when it was built: another one takes its place after a change, and a request
 * keeps the table it began with. Only what matches is remembered in it.
 */
export class RouteTable {
  readonly #hosts = new Map<string, HostRoutes>();
  readonly #everywhere: HostRoutes;
  /** Apps that may take requests before all routes. */
  readonly claimants: readonly AppMount[];

  constructor(mounts: readonly AppMount[], layers: readonly MiddlewareLayer[] = []) {
    const apps = mounts.map(({ routes }) => routes);
    this.claimants = mounts.filter(({ provider }) => provider.claims !== undefined);
    const of = (host: string) => apps.filter((app) => app.mount.host === host);
    const before = (host: string) => layers.filter(({ owner }) => owner.host === "*" || owner.host === host);
    this.#everywhere = new HostRoutes([of("*")], before("*"));
    const hosts = new Set([...mounts.map(({ host }) => host), ...layers.map(({ owner }) => owner.host)]);
    hosts.delete("*");
    for (const host of hosts) this.#hosts.set(host, new HostRoutes([of("*"), of(host)], before(host)));
  }

  /** Matches a raw path; undefined when it climbs above the root. */
  resolve(host: string, method: string, rawPath: string): Resolution | undefined {
    return (this.#hosts.get(host) ?? this.#everywhere).resolve(method, rawPath);
  }

  /** What answers a request that an app has taken. */
  claimed({ mount, handler }: Claim, method: string, path: string): Resolution {
    const chain = (this.#hosts.get(mount.host) ?? this.#everywhere).chainBefore(mount.name);
    const route = mount.routes.claimed(handler, method);
    const candidates = [{ route, argument: argumentOf(route, path) }];
    return { path, candidates, routed: true, allowed: [method], upgradable: false, cors: undefined, chain };
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
  /** Length of the longest base of an app. */
  readonly #longestBase: number;
  readonly #layers: Layers;
  /** By raw path. */
  readonly #memo: Memo;
  /** By the longest prefix that is routed with all that is below it: of paths that no other route knows. */
  readonly #memoBelow = new Memo(MAX_REMEMBERED);
  readonly #exact: ReadonlySet<string>;
  readonly #open: ReadonlySet<string>;
  readonly #longestOpen: number;

  constructor(groups: readonly (readonly AppRoutes[])[], layers: readonly MiddlewareLayer[]) {
    this.#layers = new Layers(layers);
    this.#groups = groups.map((apps) => Map.groupBy(apps, (app) => app.mount.base));
    this.#longestBase = groups.flat().reduce((longest, { mount }) => Math.max(longest, mount.base.length), 0);
    const routes = this.list();
    this.#exact = new Set(routes.filter((route) => !reachesBelow(route)).map(({ prefix }) => prefix));
    // Room for all that is routed, and for other spellings and methods of it.
    this.#memo = new Memo(Math.max(MAX_REMEMBERED, 2 * this.#exact.size));
    this.#open = new Set(routes.filter(reachesBelow).map(({ prefix }) => prefix));
    this.#longestOpen = longestOf(this.#open);
  }

  chainBefore(app: string): Chain | undefined {
    return this.#layers.before(new Set([app]));
  }

  list(): Route[] {
    return this.#groups.flatMap((group) => [...group.values()].flat().flatMap((app) => app.routes));
  }

  resolve(method: string, rawPath: string): Resolution | undefined {
    const remembered = this.#memo.get(method, rawPath);
    if (remembered !== undefined) return remembered;
    const path = decodePath(rawPath);
    if (path === undefined) return undefined;
    // What dot segments lead to may be routed otherwise.
    if (this.#exact.has(path) || path.includes("/.")) {
      return this.#memo.set(method, rawPath, this.#match(method, path));
    }
    // There are more such paths than anybody can remember, and all of one prefix are matched alike.
    const prefix = this.#openPrefix(path);
    const alike = this.#memoBelow.get(method, prefix);
    return alike === undefined ? this.#memoBelow.set(method, prefix, this.#match(method, path)) : movedTo(alike, path);
  }

  /** The longest one that a path is below; of a path that is below none something that is no prefix. */
  #openPrefix(path: string): string {
    let longest = this.#open.has("") ? "" : "*";
    for (const base of basesOf(path, this.#longestOpen)) if (this.#open.has(base)) longest = base;
    return longest;
  }

  #match(method: string, path: string): Resolution {
    const candidates: Candidate[] = [];
    const methods = new Set<string>();
    const reached = new Set<string>();
    let cors: CorsPolicy | undefined;
    for (const group of this.#groups) {
      const found: Route[] = [];
      for (const base of basesOf(path, this.#longestBase)) {
        for (const app of group.get(base) ?? []) {
          const matched = app.match(path, method);
          if (matched.reached) {
            cors ??= app.mount.cors;
            reached.add(app.mount.name);
          }
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
    const tried = new Set(candidates.map(({ route }) => route.app));
    const guarded = tried.size > 0 ? tried : reached;
    // A handler that resolves dot segments may answer with what another app stands for: what stands before that one counts.
    const resolved = withoutDots(path);
    if (resolved !== path) for (const name of this.#reachedBy(resolved, method)) guarded.add(name);
    const chain = this.#layers.before(guarded);
    return { path, candidates, routed, allowed: [...methods].sort(), upgradable, cors, chain };
  }

  /** Names of the apps that know a path. */
  #reachedBy(path: string, method: string): string[] {
    const bases = [...basesOf(path, this.#longestBase)];
    const apps = this.#groups.flatMap((group) => bases.flatMap((base) => group.get(base) ?? []));
    return apps.filter((app) => app.match(path, method).reached).map(({ mount }) => mount.name);
  }
}

/** What was found for one path, of another that is matched in the same way. */
function movedTo(resolution: Resolution, path: string): Resolution {
  const candidates = resolution.candidates.map(({ route }) => ({ route, argument: argumentOf(route, path) }));
  return { ...resolution, path, candidates };
}

/** Resolutions by method and path, within bounds. */
class Memo {
  readonly #byMethod = new Map<string, Map<string, Resolution>>();
  readonly #most: number;
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get(method: string, path: string): Resolution | undefined {
    return this.#byMethod.get(method)?.get(path);
  }

  set(method: string, path: string, resolution: Resolution): Resolution {
    if (path.length > MAX_REMEMBERED_PATH || method.length > MAX_REMEMBERED_METHOD) return resolution;
    if (this.#size >= this.#most) {
      this.#byMethod.clear();
      this.#size = 0;
    }
    let byPath = this.#byMethod.get(method);
    if (byPath === undefined) this.#byMethod.set(method, (byPath = new Map()));
    byPath.set(path, resolution);
    this.#size += 1;
    return resolution;
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
