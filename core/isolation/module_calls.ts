/**
 * Decides what happens when the code of a module calls the host: it logs, reports a fault, provides
 * an app, announces an event, and so on. The code may be hostile: everything that it sends goes
 * through a reader of `received.ts`, and a sandboxed module must keep to `rules.ts`.
 */
import type { Exchange } from "../http/lifecycle/exchange.ts";
import type { InstanceOwner } from "../module/code.ts";
import { deserializeError, type SerializedError } from "../relay/errors.ts";
import { SchemaFault } from "../relay/message_schema.ts";
import type { HttpProvider, Module } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { REQUEST_STEP } from "../util/usage.ts";
import { callAt, functionsOf, isFunctionAt, type Shape, shapeOf } from "./exports.ts";
import type { Forwarder } from "./forward.ts";
import type { ProvidedApp } from "./messages.ts";
import {
  eventName,
  MAX_ITEMS,
  readApp,
  readItem,
  readKind,
  readLines,
  readNote,
  readOption,
  readPath,
  readValues,
} from "./received.ts";
import { appFault, eventRemedy, hookRemedy, mayAnnounce, mayHook, type RuledNames } from "./rules.ts";
import type { ModuleRunner, RunnerHandlers } from "./runner.ts";
import { refusalIn } from "./runner_kind.ts";
import { countReported, type IsolatedRights, type IsolationDeps, othersOf } from "./task.ts";

/**
 * Maximum number of routes of all apps of an instance. The host adds them without a pause: 20,000
 * took it a second.
 */
const MAX_ROUTES = 5000;

/** Maximum number of calls of other modules that an instance may wait for. */
const MAX_CALLS = 1000;

/** The instance whose code calls, as the host sees it. */
export interface CallingInstance {
  readonly runner: ModuleRunner;
  readonly isolated: IsolatedRights;
  readonly module: Module;
  readonly owner: InstanceOwner;
  readonly deps: IsolationDeps;
  /** The modules that it has declared to depend on. */
  readonly depends: readonly string[];
  readonly forwarder: Pick<Forwarder, "handle" | "upgrade">;
}

export class ModuleCalls {
  readonly #instance: CallingInstance;
  readonly #name: string;
  /** The host trusts an isolated module, and checks what a sandboxed one sends. */
  readonly #isSandboxed: boolean;
  /** The exports of the modules that this one depends on. */
  readonly #dependencies = new Map<string, { readonly exported: unknown; readonly shape: Shape }>();
  /** Events that it hooks. */
  readonly #events = new Set<string>();
  #apps = 0;
  #routes = 0;
  #calls = 0;

  constructor(instance: CallingInstance) {
    this.#instance = instance;
    this.#name = instance.runner.source.name;
    this.#isSandboxed = instance.runner.kind === "sandbox";
  }

  /** Returns the functions that the code may call. A call of another form ends it. */
  handlers(): RunnerHandlers {
    const handlers: Record<string, (...values: readonly unknown[]) => unknown> = {
      log: (lines) => this.#log(lines),
      fault: (step, error) => this.#fault(step, error as SerializedError),
      provide: (app) => this.#provideLate(app),
      note: (text) => {
        this.#instance.owner.note = text === undefined ? undefined : readNote(text, "its status");
      },
      announce: (event, data, to) => this.#announce(eventName(event, "an event"), data, to),
      listen: (event) => this.listen(eventName(event, "an event")),
      read: (option) => {
        const { authority } = this.#instance.isolated;
        const permission = { kind: "options", item: readOption(option, "an option") } as const;
        authority.count(permission, authority.allows(permission));
      },
      permission: (what, item) =>
        countReported(this.#instance.isolated, readKind(what, "a kind of permissions"), readItem(item, "a permission")),
      depend: (name, path, values) =>
        this.#call(eventName(name, "the name of a module"), readPath(path, "a path"), readValues(values, "the values")),
    };
    const checked = Object.entries(handlers).map(([name, handler]) => [
      name,
      (...values: readonly unknown[]) => {
        try {
          return handler(...values);
        } catch (error) {
          if (error instanceof SchemaFault) this.#end(`it sent a malformed message: ${error.message}`);
          throw error;
        }
      },
    ]);
    return Object.fromEntries(checked);
  }

  /** Lets the code call a module that it depends on. Returns what the code gets of its exports. */
  depend(name: string): Shape | undefined {
    const exported = this.#instance.module.depends(name);
    if (name === "http") return undefined;
    const all = shapeOf(exported);
    const { authority } = this.#instance.isolated;
    // A sandboxed module gets values only with all functions.
    const isWhole = !this.#isSandboxed || authority.isAudited || authority.allows({ kind: "call", item: `${name}.*` });
    const shape = isWhole ? all : functionsOf(all);
    this.#dependencies.set(name, { exported, shape });
    return shape;
  }

  /** Sends an event to the code whenever it is announced. */
  listen(event: string): void {
    const { runner, depends, module, owner } = this.#instance;
    if (this.#events.has(event) || this.#events.size >= MAX_ITEMS) return;
    if (this.#isSandboxed && !mayHook(this.#name, depends, event, this.#others)) {
      this.#end(`it hooked ${event}: ${hookRemedy(this.#name)}`);
      return;
    }
    this.#events.add(event);
    module.hook(event, (data: unknown) => {
      try {
        runner.channel.notify("event", event, data);
      } catch (error) {
        owner.advise(`cannot receive the event ${event} in its ${runner.kind}: ${reasonOf(error)}`);
      }
    });
  }

  /** Provides an app, whose requests are forwarded to the code. */
  provide(module: Module, { keys, hasMiddleware, settings }: ProvidedApp): void {
    this.#apps += 1;
    if (this.#apps > MAX_ITEMS) throw new Error(`More than ${MAX_ITEMS} apps`);
    this.#routes += keys?.length ?? 0;
    if (this.#routes > MAX_ROUTES) throw new Error(`More than ${MAX_ROUTES} routes`);
    const { handle, upgrade } = this.#instance.forwarder;
    const route = keys?.map((key) => [key, /^WS\b/.test(key) ? upgrade : handle]);
    const middleware = (context: { state: { event: Exchange } }) => handle(context.state.event);
    const provider = {
      ...settings,
      streaming_uploads: true,
      ...(route && { route: Object.fromEntries(route) }),
      ...(hasMiddleware ? { middleware } : {}),
    };
    module.provides("http", provider as unknown as HttpProvider);
  }

  /** Returns the names that the rules for a sandboxed module depend on. */
  names(): RuledNames {
    const { deps } = this.#instance;
    const { config } = deps.context;
    const tables = [undefined, ...config.hosts()].map((host) => config.value("http_paths", host));
    const placed = new Set(tables.flatMap((paths) => Object.keys(paths ?? {})));
    const enabled = deps.hostsOf(this.#name);
    const closedHosts = enabled.length === 0 ? [] : config.hosts().filter((host) => !enabled.includes(host));
    return { others: this.#others, placed, closedHosts };
  }

  get #others(): readonly string[] {
    return othersOf(this.#name, this.#instance.deps);
  }

  #end(reason: string): void {
    void this.#instance.runner.end(reason);
  }

  #log(lines: unknown): void {
    const { runner, module } = this.#instance;
    for (const { level, text, fields, characters } of readLines(lines, "its log"))
      if (runner.lines?.take(characters) !== false) module.log(level, fields, "%s", text);
  }

  #fault(step: unknown, error: SerializedError): void {
    const { usage } = this.#instance.owner;
    const name = readNote(step, "the step of a fault");
    if (name === REQUEST_STEP) usage.requestFailed(deserializeError(error));
    else usage.fault(name, deserializeError(error));
  }

  /** Provides an app that the module has added after it was loaded. */
  #provideLate(received: unknown): void {
    const { runner, module, owner } = this.#instance;
    try {
      const app = readApp(received, "an app");
      const refuse = refusalIn(runner.kind);
      const fault = this.#isSandboxed ? appFault(this.#name, app, this.names()) : undefined;
      if (fault !== undefined) throw refuse(...fault);
      if (app.host !== module.host) {
        const what = `provide an app of the host ${app.host} after it is loaded`;
        throw refuse(what, "provide it in the module's function, or in add_host");
      }
      this.provide(module, app);
    } catch (error) {
      owner.fault("adding what it provides", error);
    }
  }

  #announce(event: string, data: unknown, to: unknown): void {
    const host = to === undefined ? undefined : eventName(to, "the host of an event");
    if (this.#isSandboxed && !mayAnnounce(this.#name, event, this.#others)) {
      this.#end(`it announced the event ${event}, which is not its own: ${eventRemedy(this.#name)}`);
    } else this.#instance.module.announce_event(event, data, host);
  }

  async #call(name: string, path: readonly string[], values: readonly unknown[]): Promise<unknown> {
    const { exported, shape } = this.#dependencies.get(name) ?? {};
    if (!isFunctionAt(shape, path)) throw new TypeError(`${name} exports no function ${path.join(".")}`);
    this.#instance.isolated.authority.use({ kind: "call", item: `${name}.${path.join(".")}` });
    if (this.#calls >= MAX_CALLS) throw new Error(`More than ${MAX_CALLS} calls of other modules are pending`);
    this.#calls += 1;
    try {
      return await callAt(exported, path, values);
    } finally {
      this.#calls -= 1;
    }
  }
}
