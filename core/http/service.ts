import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isDeepStrictEqual } from "node:util";
import type Koa from "koa";
import type { Context } from "koa";
import type { NodeRequest, NodeResponse } from "../util/node_messages.ts";
import { Listeners, type Receiver, type TlsSource } from "./connection/listeners.ts";
import { ProgressWatch } from "./connection/progress.ts";
import { unparsedMessages } from "./connection/unparsed_messages.ts";
import { type Handover, wantsWebsocket, websocketMethod } from "./connection/upgrade.ts";
import type { Exchange } from "./lifecycle/exchange.ts";
import { unparsedExchange } from "./lifecycle/unparsed_exchange.ts";
import { type ActiveRequest, namesOfCut } from "./message/in_flight.ts";
import { decodePath, parseTarget } from "./message/paths.ts";
import { eventOf, hostApplication } from "./middleware/koa.ts";
import { listenForErrors } from "./middleware/koa_errors.ts";
import { type DescribedLayer, inOrder, type LayerInfo, type MiddlewareLayer } from "./middleware/layer.ts";
import { type PipelineService, pipeline } from "./pipeline.ts";
import { TrustedProxies } from "./policy/proxies.ts";
import { badHost, VirtualHosts } from "./routing/hosts.ts";
import type { AppMount } from "./routing/mount.ts";
import type { RouteInfo } from "./routing/route.ts";
import { matchedBy } from "./routing/routers.ts";
import { RouteTable } from "./routing/routes.ts";
import type { HttpEnvironment, HttpSettings } from "./settings.ts";

/** Why a request gets its response; `modhost routes --explain` prints it. */
export interface Explanation {
  readonly method: string;
  /** The decoded path; undefined when it climbs above the root. */
  readonly path: string | undefined;
  /** The virtual host; undefined when the name is unknown. */
  readonly host: string | undefined;
  /** Apps that may claim a request before the routes are tried, mostly by its host. */
  readonly claimants: readonly Pick<RouteInfo, "app" | "module">[];
  /** Middleware that runs before the apps, the outermost first. */
  readonly middleware: readonly LayerInfo[];
  /** Routes that match, in the order in which they are tried. */
  readonly candidates: readonly (RouteInfo & { readonly argument: string | undefined })[];
  /** Status when no candidate responds. */
  readonly status: number;
  readonly reason: string;
}

/** Settings that a connection keeps from its start to its end. */
const connectionLimits = ["maxHeaderSize", "headTimeout", "idleTimeout", "maxStreams", "http2", "http1Ports"] as const;

/** Lets the other processes of the server serve some connections and requests. */
export interface RequestSiblings {
  /**
   * Called for each new plain HTTP connection. Calls `serve`, or passes the connection to another
   * process, within `patience` milliseconds.
   */
  begins(socket: Socket, serve: () => void, patience: number, proxies: TrustedProxies): void;
  /** Called for each request that reaches this process, before its body is read. */
  arrived(request: IncomingMessage): void;
  /** Returns true when another process serves the request. */
  takes(request: NodeRequest, proxies: TrustedProxies): boolean;
  /** Called before this process serves a request. */
  stays(request: NodeRequest, response: NodeResponse, proxies: TrustedProxies): void;
  /**
   * Passes a request for which `takes` returned true to its process. `isLast`: the connection is
   * closed after the response. `handover`: the connection of a request for a websocket.
   */
  serve(request: NodeRequest, response: NodeResponse, isLast: boolean, handover: Handover | undefined): void;
  /** Called when the mounted apps, or the middleware before them, may have changed. */
  mounted(): void;
}

type Handle = (request: NodeRequest, response: NodeResponse) => void;

/** Requests whose client waits for `100 Continue` before it sends the body. */
const expecting = new WeakSet<NodeRequest>();

/** Connections that Node's server has released, by their upgrade request. */
const handovers = new WeakMap<NodeRequest, Handover>();

/** Metrics of a service. */
export interface ServiceMetrics {
  /** `open`: connections that are open now. `plain` and `secure`: connections accepted so far. */
  readonly connections: { readonly open: number; readonly plain: number; readonly secure: number };
  /** Requests that could not be parsed. */
  readonly malformed: number;
  /** Number of requests in progress, by module. */
  readonly active: ReadonlyMap<string, number>;
}

/**
 * Serves a route table over connections that its caller accepts. Koa runs each request through the
 * pipeline; the table chooses the handlers.
 */
export class HttpService implements PipelineService {
  readonly settings: HttpSettings;
  readonly environment: HttpEnvironment;
  readonly watch: ProgressWatch;
  proxies: TrustedProxies;
  /** Accepts new connections. Earlier listeners keep serving the connections that they have. */
  listeners: Listeners;
  /** The Koa application that creates the contexts of the requests. */
  readonly koa: Koa;
  /** Whether each connection is closed after its current response. */
  stopping = false;
  hosts: VirtualHosts;
  /** The other processes of the server; undefined when there is only one process. */
  siblings: RequestSiblings | undefined;
  readonly #handle: Handle;
  readonly #receiver: Receiver;
  #tls: TlsSource | undefined;
  readonly #previousListeners = new Set<Listeners>();
  /** The service that replaced this one. It serves further requests on this one's connections. */
  #replacement: HttpService | undefined;
  readonly #replaced = new Set<HttpService>();
  /** In the order of loading. */
  readonly #mounts = new Set<AppMount>();
  /** Unmounted apps that still have requests in progress. */
  readonly #leaving = new Set<AppMount>();
  #layers: readonly MiddlewareLayer[] = [];
  /** Undefined from each change of the apps until the table is next used. */
  #built: RouteTable | undefined;

  /**
   * Keeps `settings`, and changes that object in `configure`. `koa`: the application of another
   * service, when both use the same contexts.
   */
  constructor(settings: HttpSettings, environment: HttpEnvironment, tls: TlsSource | undefined, koa?: Koa) {
    this.koa = koa ?? hostApplication();
    this.settings = settings;
    this.environment = environment;
    listenForErrors(this.koa, (text, context) => {
      const event = context && (eventOf(context) as unknown as Exchange | undefined);
      if (event === undefined) environment.log.error("middleware reports: %s", text);
      else event.reportText("its middleware reports", text);
    });
    this.watch = new ProgressWatch(settings.progressTimeout, settings.progressBytes, settings.maxUnsent);
    this.proxies = new TrustedProxies(settings.trustedProxies, settings.legacyForwarded);
    this.hosts = new VirtualHosts(settings.hosts, settings.defaultHost);
    this.#handle = pipeline(this);
    const current = () => this.#replacement ?? this;
    const serve = (request: NodeRequest, response: NodeResponse) => {
      environment.arrived?.(request as IncomingMessage);
      const service = current();
      if (service.siblings === undefined) service.#handle(request, response);
      else service.#share(service.siblings, request, response);
    };
    this.#tls = tls;
    this.#receiver = {
      serve,
      serveExpecting(request, response) {
        expecting.add(request);
        serve(request, response);
      },
      upgrades: (request) => current().#upgrades(request),
      tunnels: () =>
        current()
          .#mounts.values()
          .some(({ provider }) => provider.tunnels === true),
      refuse: (request, response, status, error) =>
        current().#unparsed({ request, response }).refuse(status, undefined, error),
      lost: (socket) => current().#unparsed(unparsedMessages(socket)).announce(400, false),
      serveUpgrade(request, handover) {
        handovers.set(request, handover);
        serve(request, handover.response);
      },
    };
    this.listeners = new Listeners({ ...settings }, environment, tls, this.#receiver);
  }

  #unparsed({ request, response }: ReturnType<typeof unparsedMessages>): Exchange {
    return unparsedExchange(this, this.koa.createContext(request as never, response as never) as Context);
  }

  /** Serves the request here, or passes it to the process that it belongs to. */
  #share(siblings: RequestSiblings, request: NodeRequest, response: NodeResponse): void {
    siblings.arrived(request as IncomingMessage);
    if (siblings.takes(request, this.proxies)) {
      siblings.serve(request, response, this.stopping, handovers.get(request));
      return;
    }
    siblings.stays(request, response, this.proxies);
    this.#handle(request, response);
  }

  /**
   * Applies other settings. Connection limits apply to new connections; open connections keep their
   * limits. `tls`: the certificates for new connections.
   */
  configure(settings: HttpSettings, tls?: TlsSource): void {
    const isOther = connectionLimits.some((name) => !isDeepStrictEqual(settings[name], this.settings[name]));
    Object.assign(this.settings, settings);
    this.watch.configure(settings.progressTimeout, settings.progressBytes, settings.maxUnsent);
    this.proxies = new TrustedProxies(settings.trustedProxies, settings.legacyForwarded);
    this.hosts = new VirtualHosts(settings.hosts, settings.defaultHost);
    const isSecured = tls === undefined || this.secure(tls);
    if (!isOther && isSecured) return;
    const previous = this.listeners;
    // The listeners get a copy, so that later changes do not reach open connections.
    this.listeners = new Listeners({ ...settings }, this.environment, this.#tls, this.#receiver, previous.counts);
    this.#previousListeners.add(previous);
    previous.whenEmpty(() => {
      this.#previousListeners.delete(previous);
      void previous.close(0);
    });
  }

  /**
   * Sets the certificates for new connections. Returns false when the current listeners serve no
   * TLS; the next listeners will.
   */
  secure(tls: TlsSource): boolean {
    this.#tls = tls;
    return this.listeners.secure(tls);
  }

  /** Serves an HTTP/1 connection. */
  connect(socket: Socket): void {
    const serve = () => (this.#replacement ?? this).listeners.connect(socket);
    if (this.siblings === undefined) serve();
    else this.siblings.begins(socket, serve, this.settings.headTimeout * 1000, this.proxies);
  }

  /** Serves a request that has come over no connection of these listeners. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    this.#receiver.serve(request, response);
  }

  get #allListeners(): Listeners[] {
    return [this.listeners, ...this.#previousListeners];
  }

  /** Adds an app. */
  mount(mount: AppMount): void {
    mount.listIn(undefined);
    this.#mounts.add(mount);
    this.remount();
  }

  /** Removes an app. Requests in progress keep the route table that they began with. */
  unmount(mount: AppMount): void {
    if (!this.#mounts.delete(mount)) return;
    // A request may have matched the app and still be in middleware before it.
    mount.listIn(this.#leaving);
    this.remount();
  }

  /** Replaces the middleware that runs before the apps. */
  putBefore(layers: readonly MiddlewareLayer[]): void {
    this.#layers = layers;
    this.remount();
  }

  /**
   * Discards the route table after a change. Its next use builds a new one, because ten thousand
   * apps may be loaded one by one.
   */
  remount(): void {
    this.#built = undefined;
    this.siblings?.mounted();
  }

  /** The route table, built at its first use after a change. */
  get table(): RouteTable {
    this.#built ??= new RouteTable([...this.#mounts], this.#layers);
    return this.#built;
  }

  routes(): RouteInfo[] {
    return this.table.list();
  }

  /** Apps that may claim a request before the routes are tried, mostly by its host. */
  claimants(): Pick<RouteInfo, "app" | "module">[] {
    return this.table.claimants.map(({ name, owner }) => ({ app: name, module: owner.name }));
  }

  /** Middleware that runs before the apps, the outermost first. */
  middleware(): LayerInfo[] {
    return inOrder(this.#layers).map(({ info }) => info);
  }

  describeMiddleware(): DescribedLayer[] {
    return inOrder(this.#layers).map(({ described }) => described);
  }

  explain(method: string, path: string, authority?: string): Explanation {
    const verb = method.toUpperCase();
    const chosen = this.hosts.choose(authority);
    const host = typeof chosen === "string" ? chosen : undefined;
    const claimants = this.claimants();
    const base = { method: verb, host, path: decodePath(path), claimants, middleware: [], candidates: [] };
    if (chosen === badHost) return { ...base, status: 400, reason: "This is not a valid host name" };
    if (host === undefined)
      return { ...base, status: 404, reason: "There is no such host, and http_default_host is not set" };
    const resolution = this.table.resolve(host, verb, path);
    if (resolution === undefined) return { ...base, status: 400, reason: "The path climbs above the root" };
    const middleware = resolution.chain?.layers.map(({ info }) => info) ?? [];
    const found = { ...base, middleware };
    const candidates = resolution.candidates.flatMap(({ route, argument }) =>
      matchedBy(route, verb, resolution.path).map((info) => ({ ...info, argument })),
    );
    if (resolution.routed || (candidates.length > 0 && resolution.allowed.length === 0))
      return { ...found, candidates, status: 404, reason: "if none of them responds" };
    // Without a websocket route, the request is served as the plain GET that it is.
    if (verb === websocketMethod) return this.explain("GET", path, authority);
    if (resolution.upgradable && (verb === "GET" || verb === "HEAD"))
      return { ...found, candidates, status: 426, reason: "The path is routed for websockets" };
    if (resolution.allowed.length === 0)
      return { ...found, status: 404, reason: "No loaded module has a route for this path" };
    if (verb === "OPTIONS")
      return { ...found, candidates, status: 200, reason: `Routed for ${resolution.allowed.join(", ")}` };
    return {
      ...found,
      candidates,
      status: 405,
      reason: `The path is routed for ${resolution.allowed.join(", ")} only`,
    };
  }

  /** Whether the client waits for `100 Continue` before it sends its body. */
  expects(request: NodeRequest): boolean {
    return expecting.has(request);
  }

  /** Sends `100 Continue` if the client waits for it and the response has not begun. */
  invite(request: NodeRequest, response: NodeResponse): void {
    if (expecting.delete(request) && !response.headersSent) response.writeContinue();
  }

  /** The released connection of a websocket request; undefined for other requests. */
  handover(request: NodeRequest): Handover | undefined {
    return handovers.get(request);
  }

  /** Replaces another service: further requests on that service's connections are served here. */
  replace(previous: HttpService): void {
    for (const service of [previous, ...previous.#replaced]) {
      service.#replacement = this;
      this.#replaced.add(service);
      const listeners = service.#allListeners;
      let left = listeners.length;
      for (const each of listeners) {
        each.whenEmpty(() => {
          left -= 1;
          if (left === 0 && this.#replaced.delete(service)) this.listeners.inherit(service.listeners);
          void each.close(0);
        });
      }
    }
    previous.#replaced.clear();
  }

  /** Whether the request asks for a websocket and its path has a websocket route. */
  #upgrades(request: IncomingMessage): boolean {
    if (!wantsWebsocket(request)) return false;
    if (this.siblings?.takes(request, this.proxies) === true) return true;
    const target = parseTarget(request.url ?? "");
    const host = this.hosts.choose(target?.authority ?? request.headers.host);
    if (target === undefined || typeof host !== "string") return false;
    return this.table.resolve(host, websocketMethod, target.rawPath)?.routed === true;
  }

  /** Requests in progress, the oldest first. */
  active(): ActiveRequest[] {
    const all = [...this.#leaving, ...this.#mounts].flatMap(({ active }) => [...active]);
    return all.sort((one, other) => one.began - other.began);
  }

  metrics(): ServiceMetrics {
    const connections = { open: 0, plain: 0, secure: 0 };
    let malformed = 0;
    for (const { open } of this.#everyListeners()) connections.open += open;
    for (const { listeners } of [this, ...this.#replaced]) {
      connections.plain += listeners.counts.plain;
      connections.secure += listeners.counts.secure;
      malformed += listeners.counts.malformed;
    }
    const active = new Map<string, number>();
    for (const mount of [...this.#leaving, ...this.#mounts]) {
      active.set(mount.owner.name, (active.get(mount.owner.name) ?? 0) + mount.active.size);
    }
    return { connections, malformed, active };
  }

  /**
   * Asks clients to move to new connections, which may soon lead to another process. Current
   * requests are still served.
   */
  leave(): void {
    this.stopping = true;
    for (const listeners of this.#everyListeners()) listeners.leave();
  }

  /** Undoes `leave`. */
  stay(): void {
    this.stopping = false;
  }

  /** Closes idle connections now, and every other connection after its current request. */
  stop(): void {
    this.stopping = true;
    for (const listeners of this.#everyListeners()) listeners.closeIdle();
  }

  /**
   * Stops, and resolves when all connections are closed. Cuts the connections that are still open
   * after `grace` seconds.
   */
  async close(grace: number): Promise<void> {
    // The connections belong to the service that replaced this one.
    if (this.#replacement !== undefined) return;
    this.stop();
    for (const request of this.active()) request.retire();
    const cutting = () => {
      const names = namesOfCut(this.active());
      if (names === undefined) return;
      this.environment.log.warn("Cut off requests that had not ended after %d s: %s", grace, names);
    };
    await Promise.all(this.#everyListeners().map((listeners) => listeners.close(grace, cutting)));
  }

  /** Listeners of this service and of every service it replaced. */
  #everyListeners(): Listeners[] {
    return [this, ...this.#replaced].flatMap((service) => service.#allListeners);
  }
}
