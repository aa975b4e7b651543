/** The first process of a server: runs every module, opens the ports, and answers what is its own for the others. */
import type { FollowStep, Siblings } from "../host.ts";
import type { CountedElsewhere, HttpModule } from "../http/index.ts";
import type { Module } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { Door } from "./door.ts";
import { type CollectedThere, workerFigures } from "./figures.ts";
import type { TakeConnection } from "./link.ts";
import type { KnownDoor, PortFacts, Shared, WorkerState } from "./messages.ts";
import { type RequestForwarder, requestForwarderOf } from "./request_forwarder.ts";
import type { JoiningModule, MemberDeps, Role } from "./role.ts";
import { pathsOf } from "./shared_paths.ts";
import { httpOf, stateOf } from "./state.ts";

export class FirstMember implements Role {
  readonly siblings: Siblings;
  readonly module: JoiningModule;
  readonly handlers: Role["handlers"];
  readonly passed: TakeConnection;
  readonly #deps: MemberDeps;
  readonly #door: Door;
  readonly #forwarder: RequestForwarder;
  readonly #states = new Map<number, WorkerState>();
  readonly #told = new Set<string>();
  #ends = 0;
  #isTelling = false;
  #isRunning = false;
  #last = "";

  constructor(deps: MemberDeps) {
    this.#deps = deps;
    this.#door = new Door(deps);
    this.passed = this.#door.passed;
    this.#forwarder = requestForwarderOf(deps, this.#door, () => this.#mounted());
    this.siblings = {
      changed: () => this.#tellAll(),
      follow: (step, told) => this.#follow(step, told),
      states: () => [...this.#states.values()],
    };
    this.module = { name: "workers", global: true, load: (module) => this.#join(module) };
    this.handlers = {
      sibling: (state: WorkerState, counted: readonly CountedElsewhere[]) => {
        this.#states.set(state.number, state);
        this.#http()?.counts.all.absorb(counted);
      },
      left: (number: number) => {
        this.#states.delete(number);
        this.#ends += 1;
      },
      doors: (doors: readonly KnownDoor[]) => this.#forwarder.reach(doors),
    };
  }

  #join(module: Module): void {
    module.add_item("http-siblings", this.#forwarder);
    const all = () => [stateOf(1, this.#deps.host()), ...this.#states.values()];
    module.provides(
      "metrics",
      workerFigures(all, () => this.#ends),
    );
    module.add_item("metrics-elsewhere", {
      collect: async () => ((await this.#deps.link.channel.call("gather", "figures")) as CollectedThere[][]).flat(),
    });
  }

  async running(): Promise<void> {
    await this.#door.open();
    this.#isRunning = true;
    this.#tellAll();
  }

  close(): void {
    this.#door.close();
    this.#forwarder.close();
  }

  #mounted(): void {
    // Apps come and go in groups.
    if (this.#isTelling || !this.#isRunning) return;
    this.#isTelling = true;
    setImmediate(() => {
      this.#isTelling = false;
      this.#tellShared();
    });
  }

  #tellAll(): void {
    this.#tellPorts();
    if (this.#isRunning) this.#tellShared();
  }

  #tellPorts(): void {
    const { link } = this.#deps;
    const ports = this.#deps.host()?.shared.ports() ?? [];
    for (const { key, server } of ports) {
      const handle = (server as unknown as { _handle: object | null })._handle;
      if (this.#told.has(key) || handle === null) continue;
      link.give(key, handle);
    }
    this.#told.clear();
    for (const { key } of ports) this.#told.add(key);
    link.channel.tell(
      "ports",
      ports.map(({ key, name, asked }): PortFacts => ({ key, name, asked })),
    );
  }

  #tellShared(): void {
    const host = this.#deps.host();
    if (host === undefined || host.state !== "running") return;
    const modules = [...host.shared.modules(), this.module.name];
    const http = this.#http();
    const shared: Shared = {
      modules,
      ...pathsOf(http, new Set(modules)),
      isCounted: http?.counts.all.isAsked === true,
      sticky: {
        address: pathsOf(http, host.shared.sticky("address")),
        cookie: pathsOf(http, host.shared.sticky("cookie")),
      },
    };
    const text = JSON.stringify(shared);
    if (text === this.#last) return;
    this.#last = text;
    this.#forwarder.use(shared);
    this.#deps.link.channel.tell("shared", shared);
    if (shared.everything) {
      host.log.warn(
        "Every request is answered by process 1 of %d: a shared module looks at all of them",
        this.#deps.begin.count,
      );
    }
  }

  #http(): HttpModule | undefined {
    return httpOf(this.#deps.host());
  }

  async #follow(step: FollowStep, told: (what: string) => void): Promise<void> {
    try {
      for (const what of (await this.#deps.link.channel.call("follow", step)) as string[]) told(what);
    } catch (error) {
      this.#deps.host()?.log.error("The other processes are not told of a change: %s", reasonOf(error));
    }
  }
}
