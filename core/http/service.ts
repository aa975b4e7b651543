import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type Koa from "koa";
import { badHost, VirtualHosts } from "./hosts.ts";
import { namesOfCut } from "./in_flight.ts";
import { hostApplication } from "./koa.ts";
import { type DescribedLayer, inOrder, type LayerInfo, type MiddlewareLayer } from "./layer.ts";
import { Listeners, type Receiver, type TlsSource } from "./listeners.ts";
import type { AppMount } from "./mount.ts";
import type { NodeRequest, NodeResponse } from "./node_messages.ts";
import { decodePath, parseTarget } from "./paths.ts";
import { type PipelineService, pipeline } from "./pipeline.ts";
import { ProgressWatch } from "./progress.ts";
import { TrustedProxies } from "./proxies.ts";
import type { ActiveRequest, RouteInfo } from "./route.ts";
import { RouteTable } from "./routes.ts";
import type { HttpEnvironment, HttpSettings } from "./settings.ts";
import { type Handover, wantsWebsocket, websocketMethod } from "./upgrade.ts";

/** Why a request is answered the way it is: what `modhost routes --explain` prints. */
export interface Explanation {
  readonly method: string;
  /** Decoded; undefined when the path climbs above the root. */
  readonly path: string | undefined;
  /** The virtual host; undefined when the name is unknown. */
  readonly host: string | undefined;
  /** Apps that are asked before all routes whether they take the request, mostly by its host. */
  readonly claimants: readonly Pick<RouteInfo, "app" | "module">[];
  /** Middleware before the apps, the outermost first. */
  readonly middleware: readonly LayerInfo[];
  /** In the order in which they are tried. */
  readonly candidates: readonly (RouteInfo & { readonly argument: string | undefined })[];
  /** Status when no candidate answers. */
  readonly status: number;
  readonly reason: string;
}

/** Settings that a connection has for its life. */
const connectionLimits = ["maxHeaderSize", "headTimeout", "idleTimeout", "maxStreams"] as const;

/** Other processes of the server, as far as requests are concerned. */
export interface RequestSiblings {
  /** Sees each connection of plain HTTP first: serves it, or hands it to another process, within `patience` milliseconds. */
  begins?(socket: Socket, serve: () => void, patience: number, proxies: TrustedProxies): void;
  /** Sees each request that comes to this process before anything is read of it. */
  arrived?(request: IncomingMessage): void;
  /** Another process answers the request. */
  takes?(request: NodeRequest, proxies: TrustedProxies): boolean;
  /** Sees each request that this process answers, before it does. */
  stays?(request: NodeRequest, response: NodeResponse, proxies: TrustedProxies): void;
  /** Hands over one that it takes. `isLast`: the connection is closed after the answer. */
  serve?(request: NodeRequest, response: NodeResponse, isLast: boolean): void;
  serveUpgrade?(request: IncomingMessage, handover: Handover): void;
  /** The apps may be others now. */
  mounted?(): void;
}

type Handle = (request: NodeRequest, response: NodeResponse) => void;

/** Requests whose clients wait to be asked for the body. */
const expecting = new WeakSet<NodeRequest>();

/** Connections that are handed over with a request. */
const handovers = new WeakMap<NodeRequest, Handover>();

/** What a service has done so far, and has to do now. */
export interface ServiceFigures {
  /** Connections that are open, and those that came so far. */
  readonly connections: { readonly open: number; readonly plain: number; readonly secure: number };
  /** Requests that could not be parsed. */
  readonly malformed: number;
  /** Requests that are being answered, by module. */
  readonly active: ReadonlyMap<string, number>;
}

/** Serves a route table over the connections that it is given: Koa is the pipeline, the table decides. */
export class HttpService implements PipelineService {
  readonly settings: HttpSettings;
  readonly environment: HttpEnvironment;
  readonly watch: ProgressWatch;
  proxies: TrustedProxies;
  /** Takes connections; those before it serve the ones that they have. */
  listeners: Listeners;
  /** The application whose contexts the requests have. */
  readonly koa: Koa;
  /** No further request is taken on a connection once its current one is answered. */
  stopping = false;
  hosts: VirtualHosts;
  /** Of a server of several processes. */
  siblings: RequestSiblings | undefined;
  readonly #handle: Handle;
  readonly #receiver: Receiver;
  #tls: TlsSource | undefined;
  readonly #formerListeners = new Set<Listeners>();
  /** Serves what still comes on the connections of this one. */
  #successor: HttpService | undefined;
  readonly #predecessors = new Set<HttpService>();
  /** In the order of loading. */
  readonly #mounts = new Set<AppMount>();
  /** Apps that are mounted no more, and have requests that are still being answered. */
  readonly #leaving = new Set<AppMount>();
  #layers: readonly MiddlewareLayer[] = [];
  /** Undefined while apps have changed since it was built. */
  #built: RouteTable | undefined;

  /** `settings` is kept, and changed by `configure`. `koa`: the application whose contexts requests have, where it is that of another service. */
  constructor(settings: HttpSettings, environment: HttpEnvironment, tls: TlsSource | undefined, koa?: Koa) {
    this.koa = koa ?? hostApplication();
    this.settings = settings;
    this.environment = environment;
    this.watch = new ProgressWatch(settings.progressTimeout, settings.progressBytes, settings.maxUnsent);
    this.proxies = new TrustedProxies(settings.trustedProxies, settings.legacyForwarded);
    this.hosts = new VirtualHosts(settings.hosts, settings.defaultHost);
    this.#handle = pipeline(this);
    const current = () => this.#successor ?? this;
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
      serveUpgrade(request, handover) {
        handovers.set(request, handover);
        serve(request, handover.response);
      },
    };
    this.listeners = new Listeners({ ...settings }, environment, tls, this.#receiver);
  }

  /** Lets another process answer what is its own. */
  #share(siblings: RequestSiblings, request: NodeRequest, response: NodeResponse): void {
    siblings.arrived?.(request as IncomingMessage);
    if (siblings.takes?.(request, this.proxies) !== true) {
      siblings.stays?.(request, response, this.proxies);
      this.#handle(request, response);
      return;
    }
    const handover = handovers.get(request);
    if (handover === undefined) siblings.serve?.(request, response, this.stopping);
    else siblings.serveUpgrade?.(request as IncomingMessage, handover);
  }

  /**
   * Other settings from now on. Limits of connections hold for those that come: the ones that are open keep theirs. `tls`:
   * new connections get its certificates.
   */
  configure(settings: HttpSettings, tls?: TlsSource): void {
    const isOther = connectionLimits.some((name) => settings[name] !== this.settings[name]);
    Object.assign(this.settings, settings);
    this.watch.configure(settings.progressTimeout, settings.progressBytes, settings.maxUnsent);
    this.proxies = new TrustedProxies(settings.trustedProxies, settings.legacyForwarded);
    this.hosts = new VirtualHosts(settings.hosts, settings.defaultHost);
    const isSecured = tls === undefined || this.secure(tls);
    if (!isOther && isSecured) return;
    const former = this.listeners;
    // Its own copy: what is open keeps its limits.
    this.listeners = new Listeners({ ...settings }, this.environment, this.#tls, this.#receiver, former.counts);
    this.#formerListeners.add(former);
    former.whenEmpty(() => {
      this.#formerListeners.delete(former);
      void former.close(0);
    });
  }

  /** New connections get these certificates; false where the listeners speak no TLS, and those made next do. */
  secure(tls: TlsSource): boolean {
    this.#tls = tls;
    return this.listeners.secure(tls);
  }

  /** Takes over a connection that speaks HTTP/1. */
  connect(socket: Socket): void {
    const serve = () => (this.#successor ?? this).listeners.connect(socket);
    if (this.siblings?.begins === undefined) serve();
    else this.siblings.begins(socket, serve, this.settings.headTimeout * 1000, this.proxies);
  }

  get #allListeners(): Listeners[] {
    return [this.listeners, ...this.#formerListeners];
  }

  /** Serves an app from now on. */
  mount(mount: AppMount): void {
    mount.listIn(undefined);
    this.#mounts.add(mount);
    this.remount();
  }

  /** The app gets no further requests: those in flight go on with the table that they began with. */
  unmount(mount: AppMount): void {
    if (!this.#mounts.delete(mount)) return;
    // A request may have found the app, and reach it later: there may be middleware before it that waits.
    mount.listIn(this.#leaving);
    this.remount();
  }

  /** Replaces the middleware before the apps. */
  putBefore(layers: readonly MiddlewareLayer[]): void {
    this.#layers = layers;
    this.remount();
  }

  /** Apps may have other places from now on. Nothing is built before somebody asks: ten thousand apps come one by one. */
  remount(): void {
    this.#built = undefined;
    this.siblings?.mounted?.();
  }

  /** Built when it is first asked for after a change. */
  get table(): RouteTable {
    this.#built ??= new RouteTable([...this.#mounts], this.#layers);
    return this.#built;
  }

  routes(): RouteInfo[] {
    return this.table.list();
  }

  /** Apps that are asked before all routes whether they take a request. */
  claimants(): Pick<RouteInfo, "app" | "module">[] {
    return this.table.claimants.map(({ name, owner }) => ({ app: name, module: owner.name }));
  }

  /** The middleware before apps, the outermost first. */
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
    const asked = { ...base, middleware };
    const candidates = resolution.candidates.map(({ route, argument }) => {
      const { method: key, path: routePath, host: routeHost, app, module, kind } = route;
      return { method: key, path: routePath, host: routeHost, app, module, kind, argument };
    });
    if (resolution.routed || (candidates.length > 0 && resolution.allowed.length === 0))
      return { ...asked, candidates, status: 404, reason: "if none of them answers" };
    // A request for a websocket that has no route is answered as the GET that it is.
    if (verb === websocketMethod) return this.explain("GET", path, authority);
    if (resolution.upgradable && (verb === "GET" || verb === "HEAD"))
      return { ...asked, candidates, status: 426, reason: "The path is routed for websockets" };
    if (resolution.allowed.length === 0)
      return { ...asked, status: 404, reason: "No loaded module has a route for this path" };
    if (verb === "OPTIONS")
      return { ...asked, candidates, status: 200, reason: `Routed for ${resolution.allowed.join(", ")}` };
    return {
      ...asked,
      candidates,
      status: 405,
      reason: `The path is routed for ${resolution.allowed.join(", ")} only`,
    };
  }

  /** True when the client waits for an invitation before it sends its body. */
  expects(request: NodeRequest): boolean {
    return expecting.has(request);
  }

  /** Sends `100 Continue` if the client waits for it and the answer has not begun. */
  invite(request: NodeRequest, response: NodeResponse): void {
    if (expecting.delete(request) && !response.headersSent) response.writeContinue();
  }

  /** The connection of a request that asks for a websocket, where one is served. */
  handover(request: NodeRequest): Handover | undefined {
    return handovers.get(request);
  }

  /** Takes the place of another service: what still comes on that one's connections is served here. */
  replace(former: HttpService): void {
    for (const service of [former, ...former.#predecessors]) {
      service.#successor = this;
      this.#predecessors.add(service);
      const listeners = service.#allListeners;
      let left = listeners.length;
      for (const each of listeners) {
        each.whenEmpty(() => {
          left -= 1;
          if (left === 0 && this.#predecessors.delete(service)) this.listeners.inherit(service.listeners);
          void each.close(0);
        });
      }
    }
    former.#predecessors.clear();
  }

  /** True when the request asks for a websocket on a path that is routed for it. */
  #upgrades(request: IncomingMessage): boolean {
    if (!wantsWebsocket(request)) return false;
    if (this.siblings?.takes?.(request, this.proxies) === true) return true;
    const target = parseTarget(request.url ?? "");
    const host = this.hosts.choose(target?.authority ?? request.headers.host);
    if (target === undefined || typeof host !== "string") return false;
    return this.table.resolve(host, websocketMethod, target.rawPath)?.routed === true;
  }

  /** What is being answered, the oldest first. */
  active(): ActiveRequest[] {
    const all = [...this.#leaving, ...this.#mounts].flatMap(({ active }) => [...active]);
    return all.sort((one, other) => one.began - other.began);
  }

  figures(): ServiceFigures {
    const connections = { open: 0, plain: 0, secure: 0 };
    let malformed = 0;
    for (const { open } of this.#everyListeners()) connections.open += open;
    for (const { listeners } of [this, ...this.#predecessors]) {
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

  /** Answers everything on, and lets clients go on by other connections, which may lead to another process soon. */
  leave(): void {
    this.stopping = true;
    for (const listeners of this.#everyListeners()) listeners.leave();
  }

  /** What `leave` has begun is over. */
  stay(): void {
    this.stopping = false;
  }

  /** Closes idle connections now, and each other one after its current request. */
  stop(): void {
    this.stopping = true;
    for (const listeners of this.#everyListeners()) listeners.closeIdle();
  }

  /** As `stop`, and resolves when all connections are closed; the rest is cut after `grace` seconds. */
  async close(grace: number): Promise<void> {
    // The connections belong to the service that took this one's place.
    if (this.#successor !== undefined) return;
    this.stop();
    const cutting = () => {
      const names = namesOfCut(this.active());
      if (names === undefined) return;
      this.environment.log.warn("Cut off, since they had not ended after %d s: %s", grace, names);
    };
    await Promise.all(this.#everyListeners().map((listeners) => listeners.close(grace, cutting)));
  }

  /** Those of the services whose connections this one serves, too. */
  #everyListeners(): Listeners[] {
    return [this, ...this.#predecessors].flatMap((service) => service.#allListeners);
  }
}
