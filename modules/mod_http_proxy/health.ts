/** Checks the health of upstreams at regular intervals. */
import { OutgoingRequest } from "../../core/http/index.ts";
import { reasonOf } from "../../core/index.ts";
import type { Module, Timer } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import type { Upstream } from "./upstream.ts";

interface Check {
  app: ProxiedApp;
  readonly timer: Timer;
}

export class HealthChecks {
  readonly #module: Pick<Module, "add_timer" | "log">;
  readonly #changed: () => void;
  readonly #checks = new Map<Upstream, Check>();

  /** `changed` is called when an upstream has become healthy or unhealthy. */
  constructor(module: Pick<Module, "add_timer" | "log">, changed: () => void) {
    this.#module = module;
    this.#changed = changed;
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
      else this.#checks.set(upstream, { app, timer: this.#module.add_timer(0, () => this.#check(upstream)) });
    }
  }

  /** Checks an upstream. Resolves to the seconds until the next check. */
  async #check(upstream: Upstream): Promise<number> {
    const app = this.#checks.get(upstream)?.app;
    if (app === undefined) return Number.POSITIVE_INFINITY;
    const problem = await problemOf(upstream, app);
    const { health_interval } = app.settings;
    if (!this.#checks.has(upstream) || !upstream.checked(problem === undefined, app.settings)) return health_interval;
    const { log } = this.#module;
    if (problem === undefined) log.info("%s: the upstream %s is healthy again", app.name, upstream.name);
    else {
      upstream.lastFailure = problem;
      log.warn("%s: the upstream %s is unhealthy: %s", app.name, upstream.name, problem);
    }
    this.#changed();
    return health_interval;
  }
}

/** Resolves to the fault of an upstream in a check; undefined when it is healthy. */
async function problemOf(upstream: Upstream, { settings }: ProxiedApp): Promise<string | undefined> {
  const { health_path, health_timeout, host, isHealthy } = settings;
  const { basePath, authority } = upstream.address;
  const name = host === "client" || host === "upstream" ? authority : host;
  const headers = ["Host", name, "User-Agent", "modhost-health", "Accept", "*/*"];
  const signal = AbortSignal.timeout(health_timeout * 1000);
  const target = { method: "GET", path: `${basePath}${health_path}`, headers: headers as never, signal };
  const outgoing = new OutgoingRequest(upstream.open(target), { body: undefined });
  try {
    const { incoming } = await outgoing.response;
    incoming.on("error", () => undefined);
    // The body is not needed, and may be endless.
    if (incoming.headers["content-length"] === undefined) incoming.destroy();
    else incoming.resume();
    const { statusCode = 0 } = incoming;
    return isHealthy(statusCode) ? undefined : `its response was ${statusCode}`;
  } catch (error) {
    return signal.aborted ? `it did not respond within ${health_timeout} s` : reasonOf(error);
  }
}
