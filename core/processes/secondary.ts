/**
 * A secondary of a server: listens on the sockets of the primary, and runs all modules that are not
 * shared.
 */
import { httpOf } from "../host/http_module.ts";
import type { Siblings } from "../host.ts";
import type { SharedSockets } from "../ports/shared.ts";
import type { Module } from "../types.ts";
import { moduleName } from "../util/module_name.ts";
import type { ServerState } from "./messages.ts";
import { type CollectedElsewhere, collectsMetrics, RequestCountsHere } from "./metrics.ts";
import { type Role, type RoleDeps, stateOf } from "./role.ts";

/** Milliseconds between two reports of this process's state. */
const STATE_MS = 1000;

export class Secondary implements Role {
  readonly siblings: Siblings;
  readonly handlers: Role["handlers"];
  readonly #deps: RoleDeps;
  /** Modules that only the primary runs. */
  #primaryModules: ReadonlySet<string> = new Set();
  #portsChanged: (service: string) => void = () => undefined;
  #stateTimer: NodeJS.Timeout | undefined;
  readonly #counts = new RequestCountsHere();
  #isCounted = false;
  #module: Module | undefined;
  #collect: () => Promise<CollectedElsewhere[]> = async () => [];

  constructor(deps: RoleDeps) {
    this.#deps = deps;
    this.use(deps.begin);
    this.siblings = {
      isElsewhere: (name) => this.#primaryModules.has(moduleName(name)),
      sharedPorts: {
        of: (service, known) => this.#socketsOf(service, known),
        onChange: (changed) => {
          this.#portsChanged = changed;
        },
      },
    };
    this.handlers = {
      metrics: () => this.#collect(),
      ports: (service: string) => this.#portsChanged(service),
    };
  }

  use({ scope }: ServerState): void {
    this.#primaryModules = new Set(scope?.modules);
    this.#isCounted = scope?.isCounted === true;
    // A primary that has just started does not know this process yet.
    if (this.#stateTimer !== undefined) this.#sendState();
  }

  join(module: Module): void {
    this.#module = module;
    this.#collect = collectsMetrics(module);
  }

  running(): void {
    this.#stateTimer = setInterval(() => this.#sendState(), STATE_MS).unref();
    this.#sendState();
  }

  close(): void {
    clearInterval(this.#stateTimer);
  }

  async #socketsOf(service: string, known: readonly string[]): Promise<SharedSockets> {
    const { supervisor } = this.#deps;
    const keys = (await supervisor.call("sockets", service, known)) as string[];
    return { keys, added: supervisor.takeAll(keys.map((key) => ({ key }))) };
  }

  #sendState(): void {
    const host = this.#deps.host();
    const http = this.#isCounted ? httpOf(host) : undefined;
    const counted = http === undefined || this.#module === undefined ? [] : this.#counts.take(http, this.#module);
    this.#deps.supervisor.notify("state", stateOf(this.#deps.begin.number, host), counted);
  }
}
