/** Creates the router that `Routing` of the configuration defines. */
import { AUTO, type AutoValues, builtIn, expandedList } from "../../storage/repo/auto_values.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { failure } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import type { DualDht } from "../kad/dual_dht.ts";
import type { DhtModes } from "../kad/services.ts";
import { parallel } from "./compose.ts";
import { customModes, customRouter } from "./custom.ts";
import { dhtRouter, oneDhtRouter } from "./dht_router.ts";
import { Endpoint, type Fetch, parseRouterUrl, type Resource } from "./http/endpoint.ts";
import { httpRouter } from "./http/http_router.ts";
import { type Method, only, type Router } from "./router.ts";

type Config = Pick<Repo["config"], "value"> & { readonly auto?: AutoValues };

export interface RouterDeps {
  readonly config: Config;
  readonly dhts: DualDht | undefined;
  readonly log: NodeLog;
  /** Sends requests to HTTP routers. */
  readonly fetch?: Fetch;
}

interface RoutingType {
  readonly modes: (config: Config) => DhtModes;
  readonly router: (deps: RouterDeps) => Router;
}

/** Timeout in milliseconds of an HTTP router among others, as in Kubo. */
const HTTP_TIMEOUT_MS = 15_000;

const onlyDht = (modes: DhtModes): RoutingType => ({
  modes: () => modes,
  router: ({ dhts }) => (dhts === undefined ? {} : dhtRouter(dhts)),
});

/** Queries all routers at once; storing and announcing succeed if one router accepts. */
const withHttp = (modes: DhtModes): RoutingType => ({
  modes: () => modes,
  router(deps) {
    const { dhts } = deps;
    const over = delegatedRouters(deps);
    const own = dhts === undefined ? undefined : dhtRouter(dhts);
    if (over.length === 0 && own !== undefined) return own;
    return parallel([
      ...(own === undefined ? [] : [{ router: own, ignoreErrors: true }]),
      ...over.map((router) => ({ router, ignoreErrors: true, timeoutMs: HTTP_TIMEOUT_MS })),
    ]);
  },
});

const saysAuto = (config: Config): boolean =>
  (["Routing.DelegatedRouters", "Ipns.DelegatedPublishers"] as const).some((key) => config.value(key)?.includes(AUTO));

const delegated: RoutingType = {
  modes: () => undefined,
  router(deps) {
    if (delegatedRouters(deps).length > 0) return withHttp(undefined).router({ ...deps, dhts: undefined });
    // The value of `auto` may become known later.
    if (saysAuto(deps.config)) return {};
    throw failure("CONFIG_INVALID", {
      reason:
        "no delegated routers or publishers configured for 'delegated' routing mode: add some to Routing.DelegatedRouters or Ipns.DelegatedPublishers",
    });
  },
};

const custom: RoutingType = {
  modes: customModes,
  router: ({ config, dhts, ...deps }) =>
    customRouter(config, {
      dht(name) {
        if (dhts === undefined)
          throw failure("RESTART_NEEDED", { reason: "a change to or from `none` takes effect at the next start" });
        return oneDhtRouter(dhts[name]);
      },
      http: (url) => httpRouter(new Endpoint(parseRouterUrl(url), deps), () => usesGateways(config)),
    }),
};

/**
 * The DHT of the local network is a server unless all DHTs are clients; the public one is a server
 * if it is reachable.
 */
const dht: DhtModes = { wan: "auto", lan: "server" };
const client: DhtModes = { wan: "client", lan: "client" };

const none = onlyDht(undefined);

/** By `Routing.Type`. Without HTTP routers, `auto` and the empty type equal `dht`. */
const types: Readonly<Record<string, RoutingType>> = {
  "": withHttp(dht),
  auto: withHttp(dht),
  autoclient: withHttp(client),
  dht: onlyDht(dht),
  dhtclient: onlyDht(client),
  dhtserver: onlyDht({ wan: "server", lan: "server" }),
  none,
  delegated,
  custom,
};

/**
 * Whether a text is a URL of a router; entries of the `AutoConf` document that are not are ignored.
 */
function isRouterUrl(text: string): boolean {
  try {
    parseRouterUrl(text);
    return true;
  } catch {
    return false;
  }
}

const usesGateways = (config: Config): boolean => config.value("HTTPRetrieval.Enabled") !== false;

function typeOf(config: Config): RoutingType {
  const name = config.value("Routing.Type");
  const type = Object.hasOwn(types, name) ? types[name] : undefined;
  if (type === undefined) throw failure("CONFIG_INVALID", { reason: `unrecognized routing option: ${name}` });
  return type;
}

/** @throws NodeError for an invalid configuration */
export const dhtModes = (config: Config): DhtModes => typeOf(config).modes(config);

/** Whether announcements only go to the DHTs. */
export const announcesByDht = (config: Config): boolean => ![none, delegated, custom].includes(typeOf(config));

/** @throws NodeError for an invalid configuration */
export const configuredRouter = (deps: RouterDeps): Router => typeOf(deps.config).router(deps);

/**
 * Returns the routers of `Routing.DelegatedRouters` and `Ipns.DelegatedPublishers`, one per URL.
 * @throws NodeError
 */
function delegatedRouters({ config, ...deps }: RouterDeps): readonly Router[] {
  const routersByUrl = new Map<string, { readonly endpoint: Endpoint; readonly methods: Set<Method> }>();
  const add = (
    key: "Routing.DelegatedRouters" | "Ipns.DelegatedPublishers",
    byResource: Readonly<Record<Resource, Method | undefined>>,
  ) => {
    for (const text of expandedList(config.value(key) ?? [], (config.auto ?? builtIn)[key].filter(isRouterUrl))) {
      const url = parseRouterUrl(text);
      const router = routersByUrl.get(url.base) ?? { endpoint: new Endpoint(url, deps), methods: new Set() };
      routersByUrl.set(url.base, router);
      const requested = url.resource === undefined ? Object.values(byResource) : [byResource[url.resource]];
      for (const method of requested) if (method !== undefined) router.methods.add(method);
    }
  };
  add("Routing.DelegatedRouters", { providers: "findProviders", peers: "findPeer", ipns: "search" });
  add("Ipns.DelegatedPublishers", { providers: undefined, peers: undefined, ipns: "put" });
  return [...routersByUrl.values()].map(({ endpoint, methods }) =>
    only(
      httpRouter(endpoint, () => usesGateways(config)),
      [...methods],
    ),
  );
}
