/**
 * The primary of a server: runs every module, opens the ports, and serves the requests for shared
 * modules that the other processes forward.
 */
import { httpOf } from "../host/http_module.ts";
import type { ReplicatedChange, SiblingState, Siblings } from "../host.ts";
import type { CountedElsewhere } from "../http/index.ts";
import type { Module } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { handleOf } from "../util/patches/node/handles.ts";
import type { PortFacts, PrimaryScope } from "./messages.ts";
import { type CollectedElsewhere, workerMetrics } from "./metrics.ts";
import { type Role, type RoleDeps, stateOf } from "./role.ts";
import { pathsOf } from "./shared_paths.ts";

export class Primary implements Role {
  readonly siblings: Siblings;
  readonly handlers: Role["handlers"];
  readonly #deps: RoleDeps;
  readonly #states = new Map<number, SiblingState>();
  /** Keys of the ports that the supervisor has. */
  #sentPorts: ReadonlySet<string> = new Set();
  #ends = 0;
  #isSendingScope = false;
  #isRunning = false;
  #lastScope = "";

  constructor(deps: RoleDeps) {
    this.#deps = deps;
    this.siblings = {
      changed: () => this.#sendAll(),
      replicate: (change, report) => this.#replicate(change, report),
      states: () => [...this.#states.values()],
    };
    this.handlers = {
      sibling: (state: SiblingState, counted: readonly CountedElsewhere[]) => {
        this.#states.set(state.number, state);
        httpOf(deps.host())?.counts.all.absorb(counted);
      },
      left: (number: number) => {
        this.#states.delete(number);
        this.#ends += 1;
      },
    };
  }

  join(module: Module): void {
    const states = () => [stateOf(1, this.#deps.host()), ...this.#states.values()];
    module.provides(
      "metrics",
      workerMetrics(states, () => this.#ends),
    );
    module.add_item("metrics-elsewhere", {
      collect: async () => ((await this.#deps.supervisor.call("gather", "metrics")) as CollectedElsewhere[][]).flat(),
    });
  }

  mounted(): void {
    // Apps are mounted and unmounted in groups.
    if (this.#isSendingScope || !this.#isRunning) return;
    this.#isSendingScope = true;
    setImmediate(() => {
      this.#isSendingScope = false;
      this.#sendScope();
    });
  }

  running(): void {
    this.#isRunning = true;
    this.#sendAll();
  }

  #sendAll(): void {
    this.#sendPorts();
    if (this.#isRunning) this.#sendScope();
  }

  #sendPorts(): void {
    const { supervisor } = this.#deps;
    const ports = this.#deps.host()?.shared.ports() ?? [];
    for (const { key, server } of ports) {
      const handle = handleOf(server);
      if (!this.#sentPorts.has(key) && handle !== null) supervisor.give(key, handle);
    }
    this.#sentPorts = new Set(ports.map(({ key }) => key));
    supervisor.notify(
      "ports",
      ports.map(({ key, name, requested }): PortFacts => ({ key, name, requested })),
    );
  }

  #sendScope(): void {
    const host = this.#deps.host();
    if (host === undefined || host.state !== "running") return;
    const http = httpOf(host);
    const modules = host.shared.modules();
    const scope: PrimaryScope = {
      modules: [...modules],
      ...pathsOf(http, modules),
      isCounted: http?.counts.all.isWanted === true,
      sticky: {
        address: pathsOf(http, host.shared.sticky("address")),
        cookie: pathsOf(http, host.shared.sticky("cookie")),
      },
    };
    const text = JSON.stringify(scope);
    if (text === this.#lastScope) return;
    this.#lastScope = text;
    this.#deps.supervisor.notify("scope", scope);
    if (scope.everything) {
      host.log.warn(
        "Process 1 of %d serves every request: a shared module looks at all of them",
        this.#deps.begin.count,
      );
    }
  }

  async #replicate(change: ReplicatedChange, report: (what: string) => void): Promise<void> {
    try {
      for (const what of (await this.#deps.supervisor.call("replicate", change)) as string[]) report(what);
    } catch (error) {
      this.#deps.host()?.log.error("Cannot make a change in the other processes: %s", reasonOf(error));
    }
  }
}
