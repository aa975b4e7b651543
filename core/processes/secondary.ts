/**
 * A secondary of a server: listens on the sockets of the primary, and forwards the requests that
 * the primary has to answer.
 */
import type { Siblings } from "../host.ts";
import { moduleName } from "../module/locate.ts";
import type { SharedSockets } from "../ports/shared.ts";
import type { Module } from "../types.ts";
import { IpcSocket } from "./ipc_socket.ts";
import type { KnownIpcSocket, PrimaryScope } from "./messages.ts";
import { CollectedHere, RequestCountsHere } from "./metrics.ts";
import { type RequestForwarder, requestForwarderOf } from "./request_forwarder.ts";
import type { Role, RoleDeps, RoleModule } from "./role.ts";
import { httpOf, stateOf } from "./state.ts";

/** Milliseconds between two reports of this process's state. */
const STATE_MS = 1000;

export class Secondary implements Role {
  readonly siblings: Siblings;
  readonly module: RoleModule;
  readonly handlers: Role["handlers"];
  readonly takeConnection: Role["takeConnection"];
  readonly #deps: RoleDeps;
  readonly #ipcSocket: IpcSocket;
  readonly #forwarder: RequestForwarder;
  /** Modules that only the primary runs. */
  #primaryModules: ReadonlySet<string>;
  #portsChanged: (service: string) => void = () => undefined;
  #stateTimer: NodeJS.Timeout | undefined;
  readonly #counts = new RequestCountsHere();
  #isCounted: boolean;
  #joined: Module | undefined;
  #metrics: CollectedHere | undefined;

  constructor(deps: RoleDeps) {
    this.#deps = deps;
    this.#ipcSocket = new IpcSocket(deps);
    this.takeConnection = this.#ipcSocket.takeConnection;
    this.#forwarder = requestForwarderOf(deps, this.#ipcSocket);
    this.#isCounted = deps.begin.scope?.isCounted === true;
    this.#primaryModules = new Set(deps.begin.scope?.modules);
    this.siblings = {
      // Each process loads its own module of this name.
      isElsewhere: (name) => this.#primaryModules.has(moduleName(name)) && name !== this.module.name,
      sharedPorts: {
        of: (service, known) => this.#socketsOf(service, known),
        onChange: (changed) => {
          this.#portsChanged = changed;
        },
      },
    };
    this.module = {
      name: "workers",
      global: true,
      load: (module) => {
        this.#joined = module;
        this.#metrics = new CollectedHere(module);
        module.add_item("http-siblings", this.#forwarder);
      },
    };
    this.handlers = {
      scope: (scope: PrimaryScope) => {
        this.#primaryModules = new Set(scope.modules);
        this.#isCounted = scope.isCounted;
        this.#forwarder.use(scope);
      },
      ipcSockets: (sockets: readonly KnownIpcSocket[]) => {
        this.#forwarder.reach(sockets);
        // A primary that has just started does not know this process yet.
        if (this.#stateTimer !== undefined) this.#sendState();
      },
      metrics: () => this.#metrics?.collect() ?? [],
      ports: (service: string) => this.#portsChanged(service),
    };
  }

  async running(): Promise<void> {
    await this.#ipcSocket.open();
    this.#stateTimer = setInterval(() => this.#sendState(), STATE_MS).unref();
    this.#sendState();
  }

  async close(): Promise<void> {
    clearInterval(this.#stateTimer);
    this.#ipcSocket.close();
    await this.#forwarder.close();
  }

  async #socketsOf(service: string, known: readonly string[]): Promise<SharedSockets> {
    const { supervisor } = this.#deps;
    const { keys } = (await supervisor.call("sockets", service, known)) as Pick<SharedSockets, "keys">;
    return { keys, added: supervisor.takeAll(keys.map((key) => ({ key }))) };
  }

  #sendState(): void {
    const host = this.#deps.host();
    const http = httpOf(host);
    const isCounted = this.#isCounted && http !== undefined && this.#joined !== undefined;
    const counted = isCounted ? this.#counts.take(http, this.#joined as Module) : [];
    this.#deps.supervisor.notify("state", stateOf(this.#deps.begin.number, host), counted);
  }
}
