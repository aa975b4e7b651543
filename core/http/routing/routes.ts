import { websocketMethod } from "../connection/upgrade.ts";
import { basesOf, decodePath, longestOf, withoutDots } from "../message/paths.ts";
import { type Chain, Layers, type MiddlewareLayer } from "../middleware/layer.ts";
import type { CorsPolicy } from "../policy/cors.ts";
import type { AppRoutes } from "./app_routes.ts";
import type { Claim } from "./claims.ts";
import type { AppMount } from "./mount.ts";
import { type Candidate, isOpen, type Route, type RouteInfo, reachesBelow } from "./route.ts";
import { withRouter } from "./routers.ts";

/** The result of a lookup for one method and path. */
export interface Resolution {
  /** The decoded path. */
  readonly path: string;
  readonly candidates: readonly Candidate[];
  /**
   * Whether a candidate is a route of this method. Middleware does not count, because it runs for
   * every method.
   */
  readonly routed: boolean;
  /** Whether the first of these routes forwards requests to another server. */
  readonly relayed: boolean;
  /**
   * Methods that are routed on the path, sorted, with HEAD in addition to GET; empty when the path
   * is not routed at all.
   */
  readonly allowed: readonly string[];
  /** Whether the path is also routed for websockets. */
  readonly upgradable: boolean;
  /**
   * The CORS rules of the first app that matches with any method; when none matches, of the app
   * with the longest base above the path.
   */
  readonly cors: CorsPolicy | undefined;
  /**
   * Middleware before the apps that are tried or, when none is tried, before those that know the
   * path.
   */
  readonly chain: Chain | undefined;
}

/** Results for longer paths and methods are not cached, so that the cache stays bounded. */
const MAX_REMEMBERED_PATH = 256;
const MAX_REMEMBERED_METHOD = 16;
/**
 * Size of the cache for paths without an exact route, and minimum size of the one for exact paths.
 */
const MAX_REMEMBERED = 4096;

/**
 * All routes of the server at the time the table was built. A change creates another table, and a
 * request keeps the table it began with. Only lookups that match are cached.
 */
export class RouteTable {
  readonly #hosts = new Map<string, HostRoutes>();
  readonly #everywhere: HostRoutes;
  /** Apps that may claim requests before the routes are tried. */
  readonly claimants: readonly AppMount[];

  constructor(mounts: readonly AppMount[], layers: readonly MiddlewareLayer[] = []) {
    const apps = mounts.map(({ routes }) => routes);
    this.claimants = mounts.filter(({ provider }) => provider.claims !== undefined);
    // There may be thousands of hosts.
    const appsOf = Map.groupBy(apps, ({ mount }) => mount.host);
    const layersOf = Map.groupBy(layers, ({ owner }) => owner.host);
    const everywhere = appsOf.get("*") ?? [];
    const always = layersOf.get("*") ?? [];
    this.#everywhere = new HostRoutes([everywhere], always);
    const hosts = new Set([...appsOf.keys(), ...layersOf.keys()]);
    hosts.delete("*");
    for (const host of hosts) {
      const before = [...always, ...(layersOf.get(host) ?? [])];
      this.#hosts.set(host, new HostRoutes([everywhere, appsOf.get(host) ?? []], before));
    }
  }

  /** Matches a raw path. Returns undefined when it climbs above the root. */
  resolve(host: string, method: string, rawPath: string): Resolution | undefined {
    return (this.#hosts.get(host) ?? this.#everywhere).resolve(method, rawPath);
  }

  /** Returns the result for a request that an app has claimed. */
  claimed({ mount, handler }: Claim, method: string, path: string): Resolution {
    const chain = (this.#hosts.get(mount.host) ?? this.#everywhere).chainBefore(mount.name);
    const route = mount.routes.claimed(handler, method);
    const candidates = [{ route, argument: argumentOf(route, path) }];
    return {
      path,
      candidates,
      routed: true,
      relayed: false,
      allowed: [method],
      upgradable: false,
      cors: undefined,
      chain,
    };
  }

  list(): RouteInfo[] {
    const all = [this.#everywhere, ...this.#hosts.values()].flatMap((host) => host.list());
    return [...new Set(all)].flatMap(withRouter);
  }
}

/** Routes of one virtual host: groups of apps, those of the whole server before its own. */
class HostRoutes {
  readonly #groups: readonly ReadonlyMap<string, readonly AppRoutes[]>[];
  /** Length of the longest base of an app. */
  readonly #longestBase: number;
  readonly #layers: Layers;
  /** Results by raw path. */
  readonly #memo: Memo;
  /** Results by the longest of `#prefixes`, for paths without an exact route. */
  readonly #memoBelow = new Memo(MAX_REMEMBERED);
  readonly #exact: ReadonlySet<string>;
  /** Bases of apps, and prefixes below which everything is routed. */
  readonly #prefixes: ReadonlySet<string>;
  readonly #longestPrefix: number;

  constructor(groups: readonly (readonly AppRoutes[])[], layers: readonly MiddlewareLayer[]) {
    this.#layers = new Layers(layers);
    this.#groups = groups.map((apps) => Map.groupBy(apps, (app) => app.mount.base));
    this.#longestBase = groups.flat().reduce((longest, { mount }) => Math.max(longest, mount.base.length), 0);
    const routes = this.list();
    this.#exact = new Set(routes.filter((route) => !reachesBelow(route)).map(({ prefix }) => prefix));
    // Room for all exact paths, and for other spellings and methods of them.
    this.#memo = new Memo(Math.max(MAX_REMEMBERED, 2 * this.#exact.size));
    const bases = this.#groups.flatMap((group) => [...group.keys()]);
    this.#prefixes = new Set([...bases, ...routes.filter(reachesBelow).map(({ prefix }) => prefix)]);
    this.#longestPrefix = longestOf(this.#prefixes);
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
    // A path with dot segments may lead to another app, so it is matched by itself.
    if (this.#exact.has(path) || path.includes("/.")) {
      return this.#memo.set(method, rawPath, this.#match(method, path));
    }
    // There are too many such paths to cache, and all paths of one prefix match alike.
    const prefix = this.#prefixOf(path);
    const alike = this.#memoBelow.get(method, prefix);
    return alike === undefined ? this.#memoBelow.set(method, prefix, this.#match(method, path)) : movedTo(alike, path);
  }

  /** Returns the longest prefix of a path; "*", which is not a prefix, when there is none. */
  #prefixOf(path: string): string {
    let longest = this.#prefixes.has("") ? "" : "*";
    for (const base of basesOf(path, this.#longestPrefix)) if (this.#prefixes.has(base)) longest = base;
    return longest;
  }

  #match(method: string, path: string): Resolution {
    const candidates: Candidate[] = [];
    const methods = new Set<string>();
    const reached = new Set<string>();
    let cors: CorsPolicy | undefined;
    let nearest: AppRoutes | undefined;
    for (const group of this.#groups) {
      const found: Route[] = [];
      for (const base of basesOf(path, this.#longestBase)) {
        for (const app of group.get(base) ?? []) {
          const matched = app.match(path, method);
          if (nearest === undefined || base.length >= nearest.mount.base.length) nearest = app;
          if (matched.reached) {
            cors ??= app.mount.cors;
            reached.add(app.mount.name);
          }
          for (const allowed of matched.methods) methods.add(allowed);
          // Middleware handles only HTTP.
          found.push(...matched.routes.filter(({ kind }) => kind !== "middleware" || method !== websocketMethod));
        }
      }
      found.sort(byPrecedence);
      // A HEAD route serves HEAD before any GET route does.
      if (method === "HEAD") found.sort((a, b) => Number(b.method === "HEAD") - Number(a.method === "HEAD"));
      for (const route of found) candidates.push({ route, argument: argumentOf(route, path) });
    }
    if (reached.size === 0) cors = nearest?.mount.cors;
    const upgradable = methods.delete(websocketMethod);
    // A websocket begins as a GET.
    if (upgradable) methods.add("GET");
    if (methods.has("GET")) methods.add("HEAD");
    const first = candidates.find(({ route }) => route.kind !== "middleware");
    const routed = first !== undefined;
    const relayed = first?.route.mount.provider.relays === true;
    const tried = new Set(candidates.map(({ route }) => route.app));
    const guarded = tried.size > 0 ? tried : reached;
    // A handler that resolves dot segments may serve the path of another app, so the middleware
    // before that app applies too.
    const resolved = withoutDots(path);
    if (resolved !== path) for (const name of this.#reachedBy(resolved, method)) guarded.add(name);
    const chain = this.#layers.before(guarded);
    return { path, candidates, routed, relayed, allowed: [...methods].sort(), upgradable, cors, chain };
  }

  /** Returns the names of the apps that have a route for a path, maybe of another method. */
  #reachedBy(path: string, method: string): string[] {
    const bases = [...basesOf(path, this.#longestBase)];
    const apps = this.#groups.flatMap((group) => bases.flatMap((base) => group.get(base) ?? []));
    return apps.filter((app) => app.match(path, method).reached).map(({ mount }) => mount.name);
  }
}

/** Converts the result for one path to another path that matches in the same way. */
function movedTo(resolution: Resolution, path: string): Resolution {
  const candidates = resolution.candidates.map(({ route }) => ({ route, argument: argumentOf(route, path) }));
  return { ...resolution, path, candidates };
}

/** A bounded cache of results by method and path. */
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
 * Sorts exact routes first, then redirects, then wildcards; longer wildcards before shorter ones;
 * then by priority, and then by the order of loading. Middleware counts as a wildcard at the base
 * of its app, after the app's own routes.
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
