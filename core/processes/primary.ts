/**
 * The primary of a server: runs every module, opens the ports, and serves what only it can serve
 * for the other processes.
 */
import type { ReplicatedChange, Siblings } from "../host.ts";
import type { CountedElsewhere } from "../http/index.ts";
import type { Module } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { handleOf } from "../util/patches/node/handles.ts";
import { IpcSocket } from "./ipc_socket.ts";
import type { KnownIpcSocket, PortFacts, PrimaryScope, WorkerState } from "./messages.ts";
import { type CollectedElsewhere, workerMetrics } from "./metrics.ts";
import { type RequestForwarder, requestForwarderOf } from "./request_forwarder.ts";
import type { Role, RoleDeps, RoleModule } from "./role.ts";
import { pathsOf } from "./shared_paths.ts";
import { httpOf, stateOf } from "./state.ts";

export class Primary implements Role {
  readonly siblings: Siblings;
  readonly module: RoleModule;
  readonly handlers: Role["handlers"];
  readonly takeConnection: Role["takeConnection"];
  readonly #deps: RoleDeps;
  readonly #ipcSocket: IpcSocket;
  readonly #forwarder: RequestForwarder;
  readonly #states = new Map<number, WorkerState>();
  /** Keys of the ports that the supervisor has. */
  readonly #sentPorts = new Set<string>();
  #ends = 0;
  #isSendingScope = false;
  #isRunning = false;
  #lastScope = "";

  constructor(deps: RoleDeps) {
    this.#deps = deps;
    this.#ipcSocket = new IpcSocket(deps);
    this.takeConnection = this.#ipcSocket.takeConnection;
    this.#forwarder = requestForwarderOf(deps, this.#ipcSocket, () => this.#mounted());
    this.siblings = {
      changed: () => this.#sendAll(),
      replicate: (change, report) => this.#replicate(change, report),
      states: () => [...this.#states.values()],
    };
    this.module = { name: "workers", global: true, load: (module) => this.#join(module) };
    this.handlers = {
      sibling: (state: WorkerState, counted: readonly CountedElsewhere[]) => {
        this.#states.set(state.number, state);
        httpOf(deps.host())?.counts.all.absorb(counted);
      },
      left: (number: number) => {
        this.#states.delete(number);
        this.#ends += 1;
      },
      ipcSockets: (sockets: readonly KnownIpcSocket[]) => this.#forwarder.reach(sockets),
    };
  }

  async running(): Promise<void> {
    await this.#ipcSocket.open();
    this.#isRunning = true;
    this.#sendAll();
  }

  async close(): Promise<void> {
    this.#ipcSocket.close();
    await this.#forwarder.close();
  }

  #join(module: Module): void {
    module.add_item("http-siblings", this.#forwarder);
    const states = () => [stateOf(1, this.#deps.host()), ...this.#states.values()];
    module.provides(
      "metrics",
      workerMetrics(states, () => this.#ends),
    );
    module.add_item("metrics-elsewhere", {
      collect: async () => ((await this.#deps.supervisor.call("gather", "metrics")) as CollectedElsewhere[][]).flat(),
    });
  }

  #mounted(): void {
    // Apps are mounted and unmounted in groups.
    if (this.#isSendingScope || !this.#isRunning) return;
    this.#isSendingScope = true;
    setImmediate(() => {
      this.#isSendingScope = false;
      this.#sendScope();
    });
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
    this.#sentPorts.clear();
    for (const { key } of ports) this.#sentPorts.add(key);
    supervisor.notify(
      "ports",
      ports.map(({ key, name, requested }): PortFacts => ({ key, name, requested })),
    );
  }

  #sendScope(): void {
    const host = this.#deps.host();
    if (host === undefined || host.state !== "running") return;
    const modules = [...host.shared.modules(), this.module.name];
    const http = httpOf(host);
    const scope: PrimaryScope = {
      modules,
      ...pathsOf(http, new Set(modules)),
      isCounted: http?.counts.all.isWanted === true,
      sticky: {
        address: pathsOf(http, host.shared.sticky("address")),
        cookie: pathsOf(http, host.shared.sticky("cookie")),
      },
    };
    const text = JSON.stringify(scope);
    if (text === this.#lastScope) return;
    this.#lastScope = text;
    this.#forwarder.use(scope);
    this.#deps.supervisor.notify("scope", scope);
    if (scope.everything) {
      host.log.warn(
        "Every request is answered by process 1 of %d: a shared module looks at all of them",
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
