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
import { operationsOf, shapes } from "./operations.ts";
import type { options, ProxyOptions } from "./options.ts";
import { handle, upgrade } from "./respond.ts";
import { readSettings } from "./settings.ts";

export type View = Module<typeof options>;

/** The drained upstreams, which a reload passes to the next instance. */
export type Drained = readonly { readonly host: string; readonly app: string; readonly upstream: string }[];

/** An app that is mounted on one of its hosts. */
interface Mounted {
  app: ProxiedApp;
  readonly unmount: () => Promise<void>;
}

export class ProxiedApps {
  readonly #module: View;
  readonly #metrics = new ProxyMetrics();
  readonly #checks: HealthChecks;
  /** Options by host. */
  readonly #views = new Map<string, View>();
  /** Mounted apps by host, then by name. */
  readonly #mounted = new Map<string, Map<string, Mounted>>();
  readonly #deps: ForwardDeps;
  #isServing = false;
  #status = "";

  constructor(module: View) {
    this.#module = module;
    const family = () =>
      (module as Module).get_option("http_legacy_x_forwarded") === false ? "forwarded" : "x-forwarded";
    this.#deps = { module, metrics: this.#metrics, family };
    const report = () => this.#report();
    const apps = () => this.apps;
    const now = () => module.now();
    this.#checks = new HealthChecks({ module, changed: report });
    module.provides("metrics", this.#metrics.provider(apps, now));
    module.provides("admin", {
      operations: operationsOf({ apps, now, changed: report }),
      shapes,
      pages: { folder: new URL("pages/", import.meta.url), script: "main.js" },
    });
  }

  /** Returns the apps of all hosts, each once. */
  get apps(): ReadonlySet<ProxiedApp> {
    return new Set([...this.#mounted.values()].flatMap((host) => [...host.values()].map(({ app }) => app)));
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
    for (const [host, view] of this.#views) {
      const mounted = this.#mounted.get(host) ?? new Map<string, Mounted>();
      this.#mounted.set(host, mounted);
      const wanted = next.get(host) as ReadonlyMap<string, ProxiedApp>;
      for (const [name, { unmount }] of mounted) {
        if (wanted.has(name)) continue;
        mounted.delete(name);
        void unmount();
      }
      for (const [name, app] of wanted) {
        const known = mounted.get(name);
        if (known !== undefined) known.app = app;
        else mounted.set(name, this.#mount(view, name, app));
      }
    }
    this.#release(previous);
    this.#check();
    this.#report();
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
    for (const { host, app, upstream } of drained) {
      for (const one of this.apps) {
        const found = one.host === host && one.name === app ? one.find(upstream) : undefined;
        if (found !== undefined) found.drained = true;
      }
    }
    this.#report();
  }

  /**
   * Returns the apps of each host by name. Hosts with the server's options share the server's apps.
   */
  #read(previous: ReadonlySet<ProxiedApp>): Map<string, ReadonlyMap<string, ProxiedApp>> {
    const shared = this.#module.get_option("http_proxy");
    const made = new Map<string, ReadonlyMap<string, ProxiedApp>>();
    const appsOf = (host: string, entries: ProxyOptions) => {
      const known = made.get(host);
      if (known !== undefined) return known;
      const apps = new Map(
        Object.entries(entries).map(([name, entry]) => {
          const before = [...previous].find((app) => app.host === host && app.name === name);
          return [name, new ProxiedApp(host, name, readSettings(entry, `http_proxy.${name}`), before)];
        }),
      );
      made.set(host, apps);
      return apps;
    };
    return new Map(
      [...this.#views].map(([host, view]) => {
        const entries = view.get_option("http_proxy");
        return [host, isDeepStrictEqual(entries, shared) ? appsOf("*", shared) : appsOf(host, entries)];
      }),
    );
  }

  #mount(view: View, name: string, app: ProxiedApp): Mounted {
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
      name,
      name_option: "http_proxy",
      route,
      streaming_uploads: true,
      relays: true,
      websocket: { origins: "*" },
    };
    const mounted: Mounted = { app, unmount: view.provides("http", provider) };
    return mounted;
  }

  /** Retires upstreams that belong to no app. */
  #release(previous: ReadonlySet<ProxiedApp>): void {
    const apps = [...this.apps];
    const used = new Set(apps.flatMap(({ upstreams }) => upstreams));
    for (const app of previous) {
      const next = apps.find(({ host, name }) => host === app.host && name === app.name);
      for (const upstream of app.upstreams) {
        if (used.has(upstream)) continue;
        upstream.retire();
        if (next?.find(upstream.name) === undefined) this.#metrics.forget(app, upstream);
      }
    }
  }

  #check(): void {
    if (this.#isServing) this.#checks.configure(this.apps);
  }

  /**
   * Updates the module's status if it has changed. Failed upstreams recover by themselves, so they
   * do not appear in it.
   */
  #report(): void {
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
