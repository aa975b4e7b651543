/** The apps of the configuration: mounted, checked, and exchanged as it changes. */
import { isDeepStrictEqual } from "node:util";
import { httpMethods } from "../../core/http/index.ts";
import type { HttpEvent, HttpProvider, Module, RouteTable, WebSocketEvent } from "../../core/types.ts";
import { handle, upgrade } from "./answer.ts";
import { ProxiedApp } from "./app.ts";
import { ProxyFigures } from "./figures.ts";
import type { ForwardDeps } from "./forward.ts";
import { HealthChecks } from "./health.ts";
import { operationsOf, shapes } from "./operations.ts";
import type { options, ProxyOptions } from "./options.ts";
import { readSettings } from "./settings.ts";

export type View = Module<typeof options>;

/** What a reload hands on: the upstreams that are drained. */
export type Drained = readonly { readonly host: string; readonly app: string; readonly upstream: string }[];

/** An app at one of its hosts. */
interface Mounted {
  app: ProxiedApp;
  readonly unmount: () => Promise<void>;
}

export class ProxiedApps {
  readonly #module: View;
  readonly #figures = new ProxyFigures();
  readonly #checks: HealthChecks;
  /** By host. */
  readonly #views = new Map<string, View>();
  /** By host, then by name. */
  readonly #mounted = new Map<string, Map<string, Mounted>>();
  readonly #deps: ForwardDeps;
  #isServing = false;
  #status = "";

  constructor(module: View) {
    this.#module = module;
    const family = () =>
      (module as Module).get_option("http_legacy_x_forwarded") === false ? "forwarded" : "x-forwarded";
    this.#deps = { module, figures: this.#figures, family };
    const tell = () => this.#tell();
    const apps = () => this.apps;
    const now = () => module.now();
    this.#checks = new HealthChecks({ module, changed: tell });
    module.provides("metrics", this.#figures.provider(apps, now));
    module.provides("admin", {
      operations: operationsOf({ apps, now, changed: tell }),
      shapes,
      pages: { folder: new URL("pages/", import.meta.url), script: "main.js" },
    });
  }

  /** Those of now, each once. */
  get apps(): ReadonlySet<ProxiedApp> {
    return new Set([...this.#mounted.values()].flatMap((host) => [...host.values()].map(({ app }) => app)));
  }

  /** Serves the apps of a host, too. */
  add(view: View): void {
    this.#views.set(view.host, view);
    this.configure();
  }

  /** Ports are open: upstreams are asked how they are. */
  start(): void {
    this.#isServing = this.#module.serves();
    this.#check();
  }

  /**
   * Reads the options: what is new is mounted, what is no more is taken back, and upstreams that stay keep their connections.
   * @throws {ModhostError} OPTION_INVALID: nothing has changed then
   */
  configure(): void {
    const former = this.apps;
    const next = this.#read(former);
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
    this.#release(former);
    this.#check();
    this.#tell();
  }

  /** After the last request: the connections that were kept are closed. */
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
    this.#tell();
  }

  /** The apps of each host, by name: a host that has what the server has shares it with those that do, too. */
  #read(former: ReadonlySet<ProxiedApp>): Map<string, ReadonlyMap<string, ProxiedApp>> {
    const shared = this.#module.get_option("http_proxy");
    const made = new Map<string, ReadonlyMap<string, ProxiedApp>>();
    const appsOf = (host: string, entries: ProxyOptions) => {
      const known = made.get(host);
      if (known !== undefined) return known;
      const apps = new Map(
        Object.entries(entries).map(([name, entry]) => {
          const before = [...former].find((app) => app.host === host && app.name === name);
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
    // Looked up for each request: a change of the options leaves open connections alone.
    const current = () => mounted.app;
    const route: RouteTable = {};
    for (const method of httpMethods) {
      route[`${method} /*`] = (event: HttpEvent, rest: string | undefined) =>
        handle(event, rest ?? "", current(), this.#deps);
    }
    route["WS /*"] = (event: WebSocketEvent, rest: string | undefined) =>
      upgrade(event, rest ?? "", current(), this.#deps);
    // Whether a page may open a websocket is for the upstream to say, which knows its own.
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

  /** Lets go of upstreams that no app has any more. */
  #release(former: ReadonlySet<ProxiedApp>): void {
    const apps = [...this.apps];
    const used = new Set(apps.flatMap(({ upstreams }) => upstreams));
    for (const app of former) {
      const next = apps.find(({ host, name }) => host === app.host && name === app.name);
      for (const upstream of app.upstreams) {
        if (used.has(upstream)) continue;
        upstream.retire();
        if (next?.find(upstream.name) === undefined) this.#figures.forget(app, upstream);
      }
    }
  }

  #check(): void {
    if (this.#isServing) this.#checks.configure(this.apps);
  }

  /** The status of the module, when it has changed. Upstreams that have failed come back by themselves: it says nothing of them. */
  #tell(): void {
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
