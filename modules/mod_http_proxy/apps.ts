/**
 * Mounts the apps of the configuration, checks their upstreams, and replaces them when the
 * configuration changes.
 */
import { isDeepStrictEqual } from "node:util";
import { httpMethods } from "../../core/http/index.ts";
import type { HttpEvent, HttpProvider, Module, RouteTable, WebSocketEvent } from "../../core/types.ts";
import { ProxiedApp } from "./app.ts";
import type { ForwardDeps } from "./forward.ts";
import { HealthChecks } from "./health.ts";
import { ProxyMetrics } from "./metrics.ts";
import type { options } from "./options.ts";
import { handle, upgrade } from "./respond.ts";
import { readSettings } from "./settings.ts";
import type { Upstream } from "./upstream.ts";

export type View = Module<typeof options>;

/** The name of an upstream. `host`: the virtual host of the app. */
export interface UpstreamName {
  readonly host: string | undefined;
  readonly app: string;
  readonly upstream: string;
}

/** The drained upstreams, which a reload passes to the next instance. */
export type Drained = readonly UpstreamName[];

/** An app on one of its hosts. The options of the host are those of `view`. */
interface AppOfHost {
  readonly view: View;
  readonly app: ProxiedApp;
}

/** An app that is mounted on one of its hosts. */
interface Mounted {
  app: ProxiedApp;
  readonly unmount: () => Promise<void>;
}

/** The key of an app in a map. Names of hosts contain no space. */
const appKey = (host: string, name: string): string => `${host} ${name}`;

export class ProxiedApps {
  readonly #module: View;
  readonly metrics = new ProxyMetrics();
  readonly #checks: HealthChecks;
  /** Options by host. */
  readonly #views = new Map<string, View>();
  readonly #mounted = new Map<string, Mounted>();
  readonly #deps: ForwardDeps;
  #isServing = false;
  #status = "";

  constructor(module: View) {
    this.#module = module;
    const family = () =>
      (module as Module).get_option("http_legacy_x_forwarded") === false ? "forwarded" : "x-forwarded";
    this.#deps = { module, metrics: this.metrics, family };
    this.#checks = new HealthChecks(module, () => this.report());
  }

  /** Returns the apps of all hosts, each once. */
  get apps(): ReadonlySet<ProxiedApp> {
    return new Set([...this.#mounted.values()].map(({ app }) => app));
  }

  /** Returns an upstream of an app. Without `host` it is the first app of that name. */
  find({ host, app: name, upstream }: UpstreamName): { app: ProxiedApp; upstream: Upstream } | undefined {
    for (const app of this.apps) {
      if (app.name !== name || (host !== undefined && app.host !== host)) continue;
      const found = app.find(upstream);
      if (found !== undefined) return { app, upstream: found };
    }
    return undefined;
  }

  /** Adds the apps of a host. The options are read when the last host is added. */
  add(view: View, isLast: boolean): void {
    this.#views.set(view.host, view);
    if (isLast) this.configure();
  }

  /** Called when ports are open: starts the health checks. */
  start(): void {
    this.#isServing = this.#module.serves();
    this.#check();
  }

  /**
   * Reads the options: mounts new apps, removes deleted ones, and keeps the connections of
   * unchanged upstreams. @throws {ModhostError} OPTION_INVALID, without changing anything
   */
  configure(): void {
    const previous = this.apps;
    const next = this.#read(previous);
    for (const [key, { unmount }] of this.#mounted) {
      if (next.has(key)) continue;
      this.#mounted.delete(key);
      void unmount();
    }
    for (const [key, { view, app }] of next) {
      const mounted = this.#mounted.get(key);
      if (mounted === undefined) this.#mounted.set(key, this.#mount(view, app));
      else mounted.app = app;
    }
    const used = new Set([...this.apps].flatMap(({ upstreams }) => upstreams));
    for (const { upstreams } of previous) for (const upstream of upstreams) if (!used.has(upstream)) upstream.retire();
    this.#check();
    this.report();
  }

  /** Called after the last request: closes idle connections. */
  close(): void {
    for (const { upstreams } of this.apps) for (const upstream of upstreams) upstream.retire();
  }

  save(): Drained {
    return [...this.apps].flatMap(({ host, name, upstreams }) =>
      upstreams.filter(({ drained }) => drained).map((upstream) => ({ host, app: name, upstream: upstream.name })),
    );
  }

  restore(drained: Drained): void {
    for (const name of drained) {
      const found = this.find(name);
      if (found !== undefined) found.upstream.drained = true;
    }
    this.report();
  }

  /**
   * Returns the apps by host and name. Hosts with the server's options share the server's apps,
   * whose host is "*".
   */
  #read(previous: ReadonlySet<ProxiedApp>): Map<string, AppOfHost> {
    const shared = this.#module.get_option("http_proxy");
    const known = new Map([...previous].map((app) => [appKey(app.host, app.name), app]));
    const made = new Map<string, ProxiedApp>();
    const next = new Map<string, AppOfHost>();
    for (const [host, view] of this.#views) {
      const entries = view.get_option("http_proxy");
      const owner = isDeepStrictEqual(entries, shared) ? "*" : host;
      for (const [name, entry] of Object.entries(entries)) {
        const key = appKey(owner, name);
        const settings = () => readSettings(entry, `http_proxy.${name}`);
        const app = made.get(key) ?? new ProxiedApp(owner, name, settings(), known.get(key));
        made.set(key, app);
        next.set(appKey(host, name), { view, app });
      }
    }
    return next;
  }

  #mount(view: View, app: ProxiedApp): Mounted {
    // Looked up for each request, so that a change of the options does not affect open connections.
    const current = () => mounted.app;
    const route: RouteTable = {};
    for (const method of httpMethods) {
      route[`${method} /*`] = (event: HttpEvent, rest: string | undefined) =>
        handle(event, rest ?? "", current(), this.#deps);
    }
    route["WS /*"] = (event: WebSocketEvent, rest: string | undefined) =>
      upgrade(event, rest ?? "", current(), this.#deps);
    // The upstream decides which pages may open a websocket, because it knows its own pages.
    const provider: HttpProvider = {
      name: app.name,
      name_option: "http_proxy",
      route,
      streaming_uploads: true,
      relays: true,
      websocket: { origins: "*" },
    };
    const mounted: Mounted = { app, unmount: view.provides("http", provider) };
    return mounted;
  }

  #check(): void {
    if (this.#isServing) this.#checks.configure(this.apps);
  }

  /**
   * Updates the module's status if it has changed. Failed upstreams recover by themselves, so they
   * do not appear in it.
   */
  report(): void {
    const apps = [...this.apps];
    const upstreams = apps.flatMap((app) => app.upstreams);
    const well = upstreams.filter((upstream) => upstream.state(Number.POSITIVE_INFINITY) === "healthy").length;
    const insecure = apps.filter(({ settings }) => settings.tls_insecure).map(({ name }) => name);
    const warning = insecure.length === 0 ? "" : `; INSECURE: takes any certificate for ${insecure.join(", ")}`;
    const counts = `${well} of ${upstreams.length} upstreams healthy`;
    const text =
      apps.length === 0 ? "no app has upstreams" : `${apps.map(({ name }) => name).join(", ")}: ${counts}${warning}`;
    if (text === this.#status) return;
    this.#status = text;
    this.#module.set_status(well < upstreams.length || warning !== "" ? "warn" : "info", text);
  }
}
