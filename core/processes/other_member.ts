/** A process of a server beside the first: listens on what that one has opened, and hands over what is its own. */
import type { Siblings } from "../host.ts";
import { moduleName } from "../module/locate.ts";
import type { LentSockets } from "../ports/lent.ts";
import type { Module } from "../types.ts";
import { Door } from "./door.ts";
import { CountedHere, OwnFigures } from "./figures.ts";
import type { TakeConnection } from "./link.ts";
import type { KnownDoor, Shared } from "./messages.ts";
import { type RequestForwarder, requestForwarderOf } from "./request_forwarder.ts";
import type { JoiningModule, MemberDeps, Role } from "./role.ts";
import { httpOf, stateOf } from "./state.ts";

/** How often it is told how this process is, milliseconds. */
const TELL_MS = 1000;

export class OtherMember implements Role {
  readonly siblings: Siblings;
  readonly module: JoiningModule;
  readonly handlers: Role["handlers"];
  readonly #deps: MemberDeps;
  readonly passed: TakeConnection;
  readonly #door: Door;
  readonly #forwarder: RequestForwarder;
  #modules: ReadonlySet<string>;
  #portsChanged: (service: string) => void = () => undefined;
  #telling: NodeJS.Timeout | undefined;
  readonly #counted = new CountedHere();
  #isCounted: boolean;
  #joined: Module | undefined;
  #figures: OwnFigures | undefined;

  constructor(deps: MemberDeps) {
    this.#deps = deps;
    this.#door = new Door(deps);
    this.passed = this.#door.passed;
    this.#forwarder = requestForwarderOf(deps, this.#door);
    this.#isCounted = deps.begin.shared?.isCounted === true;
    this.#modules = new Set(deps.begin.shared?.modules);
    this.siblings = {
      // Its own module of this name is given, and joins the host with the others.
      isElsewhere: (name) => this.#modules.has(moduleName(name)) && name !== this.module.name,
      lent: {
        of: (service, known) => this.#socketsOf(service, known),
        follow: (changed) => {
          this.#portsChanged = changed;
        },
      },
    };
    this.module = {
      name: "workers",
      global: true,
      load: (module) => {
        this.#joined = module;
        this.#figures = new OwnFigures(module);
        module.add_item("http-siblings", this.#forwarder);
      },
    };
    this.handlers = {
      shared: (shared: Shared) => {
        this.#modules = new Set(shared.modules);
        this.#isCounted = shared.isCounted;
        this.#forwarder.use(shared);
      },
      doors: (doors: readonly KnownDoor[]) => this.#forwarder.reach(doors),
      figures: () => this.#figures?.collect() ?? [],
      ports: (service: string) => this.#portsChanged(service),
    };
  }

  async running(): Promise<void> {
    await this.#door.open();
    this.#telling = setInterval(() => this.#tell(), TELL_MS).unref();
    this.#tell();
  }

  close(): void {
    clearInterval(this.#telling);
    this.#door.close();
    this.#forwarder.close();
  }

  async #socketsOf(service: string, known: readonly string[]): Promise<LentSockets> {
    const { link } = this.#deps;
    const { keys } = (await link.channel.call("sockets", service, known)) as Pick<LentSockets, "keys">;
    const added = keys.flatMap((key) => {
      const handle = link.take(key);
      return handle === undefined ? [] : [{ key, handle }];
    });
    return { keys, added };
  }

  #tell(): void {
    const http = httpOf(this.#deps.host());
    const isCounted = this.#isCounted && http !== undefined && this.#joined !== undefined;
    const counted = isCounted ? this.#counted.take(http, this.#joined as Module) : [];
    this.#deps.link.channel.tell("state", stateOf(this.#deps.begin.number, this.#deps.host()), counted);
  }
}
