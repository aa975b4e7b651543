import {
  AppMount,
  appName,
  basePath,
  type CorsPolicy,
  corsPolicy,
  environmentOf,
  type HttpModule,
  HttpService,
  type HttpSettings,
  MiddlewareLayer,
  type OriginPolicy,
  originPolicy,
  patchNotices,
  patternHint,
  providerFaults,
  providerHints,
  type RequestSiblings,
  requestCounting,
} from "../../core/http/index.ts";
import { invalidOption, ModhostError } from "../../core/index.ts";
import type { CorsSettings, HttpProvider, MiddlewareProvider, Module, OwnedItem } from "../../core/types.ts";
import { defaultHeadersOf } from "./default_headers.ts";
import { httpFigures } from "./metrics.ts";
import { configuredMiddleware } from "./middleware.ts";
import { options } from "./options.ts";

export { options };
export const global = true;

/** What websockets are closed with: RFC 6455, and the registry that it made. */
const GOING_AWAY = 1001;
const SERVICE_RESTART = 1012;

type Provider = HttpProvider | MiddlewareProvider;

/** The provider point "http": opens the ports and mounts the routes of every app. */
export default function http(module: Module): HttpModule {
  const settings = settingsOf(module);
  const service = new HttpService(settings, environmentOf(module), module.tls_options());
  for (const notice of patchNotices()) module.log.warn("%s", notice);
  const grace = () => module.get_option_period("unload_grace") ?? 10;

  const { watchMiddleware, relocate, configured } = handleProviders(module, service, grace);
  const layersOf = async () => {
    const list = await configuredMiddleware(module, service.koa);
    // Before those of modules with the same order, also when they come later.
    return list.map((each, at) => new MiddlewareLayer(each, module, at - list.length));
  };
  module.load = async () => configured(await layersOf());
  module.changed = async (names) => {
    // What can fail goes first: nothing has changed then.
    const next = settingsOf(module);
    const layers = names.includes("http_middleware") ? await layersOf() : undefined;
    const commit = relocate();
    service.configure(next, names.some((name) => tlsOptions.has(name)) ? module.tls_options() : undefined);
    commit();
    if (layers !== undefined) configured(layers);
  };

  module.hook("certificates-changed", () => void service.secure(module.tls_options()));
  module.provides("metrics", httpFigures(service));
  module.provides("net", {
    name: "http",
    scheme: "http",
    half_open: true,
    onconnect: (socket) => service.connect(socket),
  });
  module.provides("net", {
    name: "https",
    scheme: "https",
    onconnect: (socket) => service.listeners.connectSecure(socket),
  });

  followFormer(module, service);
  module.add_item("http-service", { service });
  joinSiblings(module, service);
  // Begun with the stop, it is over when the time for requests in flight is.
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= service.close(grace()));
  module.hook("server-stopping", () => void close());
  module.unload = close;

  return {
    routes: () => service.routes(),
    explain: (method, path, authority) => service.explain(method, path, authority),
    claimants: () => service.claimants(),
    middleware: () => service.middleware(),
    describeMiddleware: () => service.describeMiddleware(),
    watchMiddleware,
    ...activity(service),
    counts: requestCounting(module),
    koa: service.koa,
    settings,
  };
}

/** A reload takes over the connections of the instance before it: the one whose item is there before its own. */
function followFormer(module: Module, service: HttpService): void {
  let isPlaced = false;
  module.handle_items(
    "http-service",
    (item) => {
      const other = (item as OwnedItem<{ service: HttpService }>).item.service;
      if (other === service) isPlaced = true;
      else if (!isPlaced) service.replace(other);
    },
    () => undefined,
  );
}

/** Of a server of several processes: which requests another one answers. */
function joinSiblings(module: Module, service: HttpService): void {
  module.handle_items(
    "http-siblings",
    (item) => {
      service.siblings = item.item as RequestSiblings;
      service.siblings.mounted?.();
    },
    () => {
      service.siblings = undefined;
    },
  );
}

/** What is being answered, by this service and those beside it. */
function activity(own: HttpService): Pick<HttpModule, "active" | "lasting" | "leave" | "beside"> {
  const services = new Set([own]);
  const active = () => [...services].flatMap((service) => service.active());
  return {
    active: () => active().map((request) => request.describe()),
    lasting(seconds) {
      const since = performance.now() - seconds * 1000;
      const lasting = active().filter(({ began, endsWhenTold }) => began < since && !endsWhenTold);
      return lasting.map((request) => request.describe());
    },
    leave() {
      for (const service of services) service.leave();
      return () => {
        for (const service of services) service.stay();
      };
    },
    beside(service) {
      services.add(service);
      return () => void services.delete(service);
    },
  };
}

/** Options whose change gives new connections other certificates. */
const tlsOptions: ReadonlySet<string> = new Set(["certificates", "https_ports", "hosts"]);

interface Providers {
  readonly watchMiddleware: HttpModule["watchMiddleware"];
  /** Reads the options of all apps anew; the returned function puts them in force. */
  relocate(): () => void;
  /** Takes the place of the middleware of the configuration. */
  configured(layers: readonly MiddlewareLayer[]): void;
}

/** Mounts what modules provide, and puts their middleware before it, for as long as it is there. */
function handleProviders(module: Module, service: HttpService, grace: () => number): Providers {
  return { ...handleMiddleware(module, service, grace), relocate: handleApps(module, service, grace) };
}

/** Gives what reads the options of all apps anew. */
function handleApps(module: Module, service: HttpService, grace: () => number): Providers["relocate"] {
  type Mounts = Map<OwnedItem<Provider>, AppMount>;
  /** By the name of the module that the apps are of. */
  const all = new Map<string, Mounts>();
  module.handle_items(
    "http-provider",
    (item) => {
      const mount = mountOf(item);
      const own: Mounts = all.get(item.owner.name) ?? new Map();
      all.set(item.owner.name, own.set(item, mount));
      service.mount(mount);
    },
    (item) => {
      const own = all.get(item.owner.name);
      const mount = own?.get(item);
      if (own === undefined || mount === undefined) return undefined;
      own.delete(item);
      if (own.size === 0) all.delete(item.owner.name);
      service.unmount(mount);
      // The next instance of a module that is reloaded has its place already.
      const isReplaced = own.keys().some(({ owner }) => isSuccessor(owner, item.owner));
      return mount.retire(grace(), isReplaced ? SERVICE_RESTART : GOING_AWAY);
    },
  );
  return () => {
    const mounts = [...all.values()].flatMap((own) => [...own]);
    const places = mounts.map(([item, mount]) => [mount, placeOf(item)] as const);
    return () => {
      for (const [mount, place] of places) mount.move(place);
      service.remount();
    };
  };
}

function handleMiddleware(module: Module, service: HttpService, grace: () => number): Omit<Providers, "relocate"> {
  let own: readonly MiddlewareLayer[] = [];
  const layers = new Map<OwnedItem, MiddlewareLayer>();
  const watching = new Set<Parameters<HttpModule["watchMiddleware"]>[0]>();
  const every = () => [...own, ...layers.values()];
  const putBefore = () => {
    service.putBefore(every());
    for (const mount of watching) mount(every());
  };
  module.handle_items(
    "http-middleware-provider",
    (item) => {
      layers.set(item, new MiddlewareLayer(item.item, item.owner));
      putBefore();
    },
    (item) => {
      const layer = layers.get(item);
      layers.delete(item);
      putBefore();
      return layer?.retire(grace());
    },
  );
  return {
    watchMiddleware(mount) {
      watching.add(mount);
      mount(every());
      return () => void watching.delete(mount);
    },
    configured(next) {
      const former = own;
      own = next;
      putBefore();
      for (const layer of former) void layer.retire(grace());
    },
  };
}

function settingsOf(module: Module): HttpSettings {
  const number = (name: keyof typeof options) => module.get_option<number>(name) as number;
  return {
    maxContentSize: number("http_max_content_size"),
    maxHeaderSize: number("http_max_header_size"),
    headTimeout: number("http_head_timeout"),
    progressTimeout: number("http_progress_timeout"),
    progressBytes: number("http_progress_bytes"),
    idleTimeout: number("http_idle_timeout"),
    maxStreams: number("http_max_streams"),
    maxUnsent: number("http_max_unsent"),
    trustedProxies: module.get_option_array("trusted_proxies") ?? [],
    legacyForwarded: module.get_option_boolean("http_legacy_x_forwarded") ?? true,
    hosts: module.hosts(),
    defaultHost: defaultHostOf(module),
    defaultHeaders: defaultHeadersOf(module),
    websocket: {
      pingInterval: number("http_websocket_ping_interval"),
      closeTimeout: number("http_websocket_close_timeout"),
      maxMessage: number("http_websocket_max_message_size"),
      maxUnsent: number("http_websocket_max_unsent"),
    },
  };
}

function defaultHostOf(module: Module): string | undefined {
  const name = module.get_option_string("http_default_host");
  const hosts = module.hosts();
  if (name === undefined || hosts.length === 0 || hosts.includes(name.toLowerCase())) return name;
  throw invalidOption("http_default_host", name, `it must be one of hosts: ${hosts.join(", ")}`);
}

/** Is the owner another instance of the same module? */
function isSuccessor(owner: Module, former: Module): boolean {
  return owner !== former && owner.name === former.name && owner.host === former.host;
}

/**
 * Puts a provider at its place.
 * @throws {ModhostError} PROVIDER_INVALID, ROUTE_INVALID, MIDDLEWARE_INVALID: its module is not loaded then
 */
function mountOf({ item: provider, owner }: OwnedItem<Provider>): AppMount {
  const faults = providerFaults(provider);
  const hints = providerHints(provider);
  if (provider.middleware === undefined && provider.route === undefined) faults.push("route is missing", ...hints);
  if (faults.length > 0) {
    const app = typeof provider.name === "string" ? provider.name : appName(owner.name);
    throw new ModhostError("PROVIDER_INVALID", { app, reason: faults.join("; ") });
  }
  for (const [key, value] of Object.entries(provider.route ?? {})) {
    const hint = patternHint(key);
    if (hint !== undefined) hints.push(hint);
    if (value === undefined) hints.push(`the route ${JSON.stringify(key)} has no handler: its value is undefined`);
  }
  for (const hint of hints) owner.log.warn("%s", hint);
  if (provider.name !== undefined && provider.name_option === undefined)
    owner.log.warn("names its app %s itself: the module's name is preferred", provider.name);
  return new AppMount({ owner, provider, host: owner.host, ...placeOf({ item: provider, owner }) });
}

/** What the options of its module's host say of an app. */
function placeOf({ item: provider, owner }: OwnedItem<Provider>) {
  const name = provider.name ?? appName(owner.name);
  const paths = owner.get_option_object("http_paths") ?? {};
  const cors = corsOf(name, provider, owner);
  return {
    name,
    base: basePath(name, owner.host, paths[name] ?? provider.default_path),
    cors,
    defaults: defaultHeadersOf(owner, { name, own: provider.default_headers }),
    origins: originsOf(provider, cors, owner),
  };
}

/**
 * Sites whose pages may open websockets. CORS that lets any site read answers does so without cookies, and says nothing
 * about websockets, which have them: only sites that it names are taken.
 */
function originsOf({ websocket }: Provider, cors: CorsPolicy | undefined, owner: Module): OriginPolicy {
  const external = owner.get_option_string("http_external_url");
  const origins = websocket?.origins;
  return originPolicy(
    typeof origins === "string" ? [origins] : origins,
    cors?.origins === "*" ? undefined : cors?.origins,
    external === undefined ? undefined : [external],
  );
}

function corsOf(name: string, provider: Provider, owner: Module) {
  const overrides = owner.get_option_object("http_cors_override") as Record<string, CorsSettings> | undefined;
  const headers = owner.get_option_array("access_control_allow_headers") ?? [];
  const defaults: CorsSettings = {
    enabled: owner.get_option_boolean("http_default_cors_enabled") ?? false,
    credentials: owner.get_option_boolean("access_control_allow_credentials") ?? false,
    origins: owner.get_option_array("access_control_allow_origins") ?? "*",
    headers: Object.fromEntries(headers.map((header) => [header, true])),
  };
  const maxAge = owner.get_option_period("access_control_max_age") ?? 7200;
  return corsPolicy(maxAge, [defaults, provider.cors, overrides?.[name]]);
}
