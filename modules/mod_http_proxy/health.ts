/** Checks the health of upstreams at regular intervals. */
import type { Module, Timer } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import type { Upstream } from "./upstream.ts";

export interface HealthDeps {
  readonly module: Pick<Module, "add_timer" | "log">;
  /** Called when an upstream has become healthy or unhealthy. */
  changed(): void;
}

interface Check {
  app: ProxiedApp;
  readonly timer: Timer;
}

export class HealthChecks {
  readonly #deps: HealthDeps;
  readonly #checks = new Map<Upstream, Check>();

  constructor(deps: HealthDeps) {
    this.#deps = deps;
  }

  /** Checks the upstreams of these apps from now on. New upstreams are checked at once. */
  configure(apps: Iterable<ProxiedApp>): void {
    const wanted = new Map<Upstream, ProxiedApp>();
    for (const app of apps) {
      if (app.settings.health_path === "") continue;
      for (const upstream of app.upstreams) wanted.set(upstream, app);
    }
    for (const [upstream, { timer }] of this.#checks) {
      if (wanted.has(upstream)) continue;
      timer.stop();
      this.#checks.delete(upstream);
      upstream.unchecked();
    }
    for (const [upstream, app] of wanted) {
      const known = this.#checks.get(upstream);
      if (known !== undefined) known.app = app;
      else this.#checks.set(upstream, { app, timer: this.#deps.module.add_timer(0, () => this.#check(upstream)) });
    }
  }

  /** Checks an upstream. Resolves to the seconds until the next check. */
  async #check(upstream: Upstream): Promise<number> {
    const app = this.#checks.get(upstream)?.app;
    if (app === undefined) return Number.POSITIVE_INFINITY;
    const problem = await problemOf(upstream, app);
    const { health_interval } = app.settings;
    if (!this.#checks.has(upstream) || !upstream.checked(problem === undefined, app.settings)) return health_interval;
    if (problem === undefined)
      this.#deps.module.log.info("%s: the upstream %s is healthy again", app.name, upstream.name);
    else {
      upstream.lastFailure = problem;
      this.#deps.module.log.warn("%s: the upstream %s is unhealthy: %s", app.name, upstream.name, problem);
    }
    this.#deps.changed();
    return health_interval;
  }
}

/** Resolves to the fault of an upstream in a check; undefined when it is healthy. */
function problemOf(upstream: Upstream, { settings }: ProxiedApp): Promise<string | undefined> {
  const { health_path, health_timeout, host, isHealthy } = settings;
  const { basePath, authority } = upstream.address;
  const name = host === "client" || host === "upstream" ? authority : host;
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const headers = ["Host", name, "User-Agent", "modhost-health", "Accept", "*/*"];
  const outgoing = upstream.open({ method: "GET", path: `${basePath}${health_path}`, headers: headers as never });
  const timer = setTimeout(() => {
    resolve(`it did not answer within ${health_timeout} s`);
    outgoing.destroy();
  }, health_timeout * 1000);
  outgoing.once("response", (incoming) => {
    const { statusCode = 0 } = incoming;
    resolve(isHealthy(statusCode) ? undefined : `it answered ${statusCode}`);
    // The body is not needed, and may be endless.
    if (incoming.headers["content-length"] === undefined) outgoing.destroy();
    else incoming.resume();
  });
  outgoing.on("error", (error: NodeJS.ErrnoException) => resolve(error.message || String(error.code)));
  outgoing.once("close", () => {
    clearTimeout(timer);
    resolve("it closed the connection without an answer");
  });
  outgoing.end();
  return promise;
}
