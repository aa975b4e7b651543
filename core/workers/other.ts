/** A process of a server beside the first: listens on what that one has opened, and hands over what is its own. */
import type { Siblings } from "../host.ts";
import type { HttpModule } from "../http/index.ts";
import { moduleName } from "../module/locate.ts";
import type { LentSockets } from "../ports/lent.ts";
import { Elsewhere } from "./elsewhere.ts";
import type { Shared, WorkerState } from "./messages.ts";
import type { JoiningModule, MemberDeps, Role } from "./role.ts";

/** How often it is told how this process is, where that has changed, milliseconds. */
const TELL_MS = 1000;

export class OtherMember implements Role {
  readonly siblings: Siblings;
  readonly module: JoiningModule;
  readonly handlers: Role["handlers"];
  readonly #deps: MemberDeps;
  readonly #elsewhere: Elsewhere;
  #modules: ReadonlySet<string>;
  #portsChanged: (service: string) => void = () => undefined;
  #telling: NodeJS.Timeout | undefined;
  #last = "";

  constructor(deps: MemberDeps) {
    this.#deps = deps;
    this.#elsewhere = new Elsewhere(deps.begin.shared, (socket, head) => deps.link.pass(socket, head));
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
      load: (module) => void module.add_item("http-siblings", this.#elsewhere),
    };
    this.handlers = {
      shared: (shared: Shared) => {
        this.#modules = new Set(shared.modules);
        this.#elsewhere.use(shared);
      },
      ports: (service: string) => this.#portsChanged(service),
    };
  }

  async running(): Promise<void> {
    this.#telling = setInterval(() => this.#tell(), TELL_MS).unref();
    this.#tell();
  }

  close(): void {
    clearInterval(this.#telling);
    this.#elsewhere.close();
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
    const host = this.#deps.host();
    if (host === undefined) return;
    const modules = host.modules();
    const isServing = modules.some(({ name, status }) => name === "http" && status === "loaded");
    const state: WorkerState = {
      number: this.#deps.begin.number,
      pid: process.pid,
      connections: host.connections(),
      requests: isServing ? host.exports<HttpModule>("http").active() : [],
      failed: modules.flatMap(({ name, status }) => (status === "loaded" ? [] : [name])),
    };
    const text = JSON.stringify(state);
    if (text === this.#last) return;
    this.#last = text;
    this.#deps.link.channel.tell("state", state);
  }
}
