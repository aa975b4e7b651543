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
  pathFault,
  patternHint,
  providerFaults,
  providerHints,
  type RequestSiblings,
  requestCounting,
} from "../../core/http/index.ts";
import { invalidOption, ModhostError } from "../../core/index.ts";
import type { CorsSettings, HttpProvider, MiddlewareProvider, Module, OwnedItem } from "../../core/types.ts";
import { defaultHeadersOf } from "./default_headers.ts";
import { httpMetricsProvider } from "./metrics.ts";
import { configuredMiddleware } from "./middleware.ts";
import { options } from "./options.ts";

export { options };
export const global = true;

/** Close codes of websockets, from RFC 6455 and its IANA registry. */
const GOING_AWAY = 1001;
const SERVICE_RESTART = 1012;

type Provider = HttpProvider | MiddlewareProvider;

/** Provides the point "http": opens the ports and mounts the routes of every app. */
export default function http(module: Module): HttpModule {
  const settings = settingsOf(module);
  const service = new HttpService(settings, environmentOf(module), module.tls_options());
  for (const notice of patchNotices()) module.log.warn("%s", notice);
  const grace = () => module.get_option_period("unload_grace") ?? 10;

  const { watchMiddleware, relocate, configured } = handleProviders(module, service, grace);
  const layersOf = async () => {
    const list = await configuredMiddleware(module, service.koa);
    // These run before the middleware of modules with the same order, even if they are loaded
    // later.
    return list.map(({ provided, account }, at) => {
      return new MiddlewareLayer(provided, module, { sequence: at - list.length, account });
    });
  };
  module.load = async () => configured(await layersOf());
  module.changed = async (names) => {
    // Steps that can fail come first, so that a failure changes nothing.
    const next = settingsOf(module);
    const layers = names.includes("http_middleware") ? await layersOf() : undefined;
    const commit = relocate();
    service.configure(next, names.some((name) => tlsOptions.has(name)) ? module.tls_options() : undefined);
    commit();
    if (layers !== undefined) configured(layers);
  };

  module.hook("certificates-changed", () => void service.secure(module.tls_options()));
  module.provides("metrics", httpMetricsProvider(service));
  module.provides("net", {
    name: "http",
    scheme: "http",
    half_open: true,
    onconnect: (socket) => service.connect(socket),
  });
  module.provides("net", {
    name: "https",
    scheme: "https",
    half_open: true,
    onconnect: (socket) => service.listeners.connectSecure(socket),
  });

  followPreviousInstance(module, service);
  module.add_item("http-service", { service });
  joinSiblings(module, service);
  // Closing starts with the stop of the server, so that it ends within the time for requests in
  // flight.
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

/**
 * After a reload, takes over the connections of the previous instance, whose item was added before
 * its own.
 */
function followPreviousInstance(module: Module, service: HttpService): void {
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

/** With several worker processes: registers which requests other processes are serving. */
function joinSiblings(module: Module, service: HttpService): void {
  module.handle_items(
    "http-siblings",
    (item) => {
      service.siblings = item.item as RequestSiblings;
      service.siblings.mounted();
    },
    () => {
      service.siblings = undefined;
    },
  );
}

/**
 * Reports the requests in flight of this service and of the services that other modules have joined
 * to it.
 */
function activity(own: HttpService): Pick<HttpModule, "active" | "lasting" | "leave" | "include"> {
  const services = new Set([own]);
  const active = () => [...services].flatMap((service) => service.active());
  return {
    active: () => active().map((request) => request.describe()),
    lasting(seconds) {
      const since = performance.now() - seconds * 1000;
      const lasting = active().filter(({ began, endsOnLeave }) => began < since && !endsOnLeave);
      return lasting.map((request) => request.describe());
    },
    leave() {
      for (const service of services) service.leave();
      return () => {
        for (const service of services) service.stay();
      };
    },
    include(service) {
      services.add(service);
      return () => void services.delete(service);
    },
  };
}

/** Options whose change gives new connections different certificates. */
const tlsOptions: ReadonlySet<string> = new Set(["certificates", "https_ports", "hosts"]);

interface Providers {
  readonly watchMiddleware: HttpModule["watchMiddleware"];
  /** Reads the options of all apps again. The returned function applies them. */
  relocate(): () => void;
  /** Replaces the middleware of the configuration. */
  configured(layers: readonly MiddlewareLayer[]): void;
}

/**
 * Mounts the routes of modules and inserts their middleware, for as long as the modules provide
 * them.
 */
function handleProviders(module: Module, service: HttpService, grace: () => number): Providers {
  return { ...handleMiddleware(module, service, grace), relocate: handleApps(module, service, grace) };
}

/** Returns a function that reads the options of all apps again. */
function handleApps(module: Module, service: HttpService, grace: () => number): Providers["relocate"] {
  type Mounts = Map<OwnedItem<Provider>, AppMount>;
  /** Mounts by the name of the module that owns the apps. */
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
      // When a module is reloaded, its next instance is already mounted.
      const isReplaced = own.keys().some(({ owner }) => isNextInstance(owner, item.owner));
      return mount.retire(grace(), isReplaced ? SERVICE_RESTART : GOING_AWAY);
    },
  );
  return () => {
    const mounts = [...all.values()].flatMap((own) => [...own]);
    const targets = mounts.map(([item, mount]) => [mount, mountTargetOf(item)] as const);
    return () => {
      for (const [mount, target] of targets) mount.move(target);
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
      const previous = own;
      own = next;
      putBefore();
      for (const layer of previous) void layer.retire(grace());
    },
  };
}

function settingsOf(module: Module): HttpSettings {
  externalUrlOf(module);
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
    http2: module.get_option_boolean("https_http2") ?? true,
    http1Ports: module.get_option<number[]>("https_http2_except") ?? [],
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

/** @throws {ModhostError} OPTION_INVALID for a URL to which no path can be added */
function externalUrlOf(module: Module): string | undefined {
  const text = module.get_option_string("http_external_url");
  if (text === undefined || !/[?#]/.test(text)) return text;
  throw invalidOption("http_external_url", text, "it must have no query and no fragment");
}

function defaultHostOf(module: Module): string | undefined {
  const name = module.get_option_string("http_default_host");
  const hosts = module.hosts();
  if (name === undefined || hosts.length === 0 || hosts.includes(name.toLowerCase())) return name;
  throw invalidOption("http_default_host", name, `it must be one of hosts: ${hosts.join(", ")}`);
}

/** Returns whether the owner is another instance of the same module. */
function isNextInstance(owner: Module, previous: Module): boolean {
  return owner !== previous && owner.name === previous.name && owner.host === previous.host;
}

/**
 * Mounts a provider. @throws {ModhostError} PROVIDER_INVALID, ROUTE_INVALID, MIDDLEWARE_INVALID.
 * Its module is then not loaded
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
  return new AppMount({ owner, provider, host: owner.host, ...mountTargetOf({ item: provider, owner }) });
}

/** Returns what the options of the module's host say about an app: its name, path and hosts. */
function mountTargetOf({ item: provider, owner }: OwnedItem<Provider>) {
  const name = provider.name ?? appName(owner.name);
  const paths = owner.get_option_object("http_paths") ?? {};
  const cors = corsOf(name, provider, owner);
  return {
    name,
    base: basePath(name, owner.host, checkedPath(name, owner, paths[name]) ?? provider.default_path),
    cors,
    defaults: defaultHeadersOf(owner, { name, own: provider.default_headers }),
    origins: originsOf(provider, cors, owner),
  };
}

/** @throws {ModhostError} OPTION_INVALID for an app path that no request can have */
function checkedPath(name: string, { host }: Module, path: unknown): unknown {
  if (path === undefined || path === null) return undefined;
  const isForHosts = host === "*" && String(path).includes("$host");
  const fault =
    typeof path !== "string"
      ? "it must be a path"
      : isForHosts
        ? "the app belongs to no virtual host, so $host has no value"
        : pathFault(path);
  if (fault === undefined) return path;
  throw invalidOption(`http_paths.${name}`, path, fault);
}

/**
 * Returns the sites whose pages may open websockets. A CORS policy for any site applies to
 * responses without cookies. Websockets do carry cookies, so only sites that the policy names are
 * accepted.
 */
function originsOf({ websocket }: Provider, cors: CorsPolicy | undefined, owner: Module): OriginPolicy {
  const external = externalUrlOf(owner);
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
