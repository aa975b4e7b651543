/**
 * Runs one instance of a module in its worker or sandbox, and serves the calls of the host. The two
 * programs differ in how they reach the host: `thread_entry.ts` and `process_entry.ts`.
 */
import type { Server } from "node:net";
import { type ModuleCode, readCode } from "../module/code.ts";
import { Deadline } from "../module/deadline.ts";
import { installHooks } from "../module/fresh_import.ts";
import { Instance } from "../module/instance.ts";
import { Items } from "../module/items.ts";
import { Channel, type Handlers, type MessageEndpoint } from "../relay/channel.ts";
import { serializeError } from "../relay/errors.ts";
import { ScopeKinds } from "../tokens/index.ts";
import type { HttpProvider, NamedTokenScopes, OwnedItem, TokenScopeItem } from "../types.ts";
import { guardListeners } from "../util/process_listeners.ts";
import { keepTickShape } from "../util/tick_shape.ts";
import { leaveFailed } from "../util/usage.ts";
import { environmentFor, SCOPES } from "./environment.ts";
import { callAt, shapeOf } from "./exports.ts";
import { WorkerHttp } from "./http.ts";
import { logTo, type WorkerLog } from "./log.ts";
import {
  appSettings,
  type Described,
  type Loaded,
  type ProvidedApp,
  type Serving,
  type SourceFile,
  type WorkerTask,
} from "./messages.ts";
import { reportPermissions } from "./permission_audit.ts";
import { type Refuse, type RunnerKind, refusalIn } from "./runner_kind.ts";

export interface ProgramOptions {
  readonly source: SourceFile;
  readonly loadTimeout: number;
  readonly kind: RunnerKind;
  /** The channel's end of this program. */
  readonly host: MessageEndpoint;
  /** Further functions that the host may call. */
  readonly handlers?: Handlers;
  /** Makes a server listen for requests. Without it the host names a path. */
  readonly listen?: (server: Server) => Promise<void>;
}

/** Returns the channel to the host. */
export function runInstance(options: ProgramOptions): Pick<Channel, "call" | "notify"> {
  installHooks();
  keepTickShape();
  const program = new InstanceProgram(options);
  program.guard();
  return program.channel;
}

class InstanceProgram {
  readonly #source: SourceFile;
  readonly #loadTimeout: number;
  readonly #kind: RunnerKind;
  readonly #refuse: Refuse;
  readonly #channel: Channel;
  readonly #log: WorkerLog;
  readonly #http: WorkerHttp;
  /** Functions that the host may call; `load` adds those of the instance. */
  readonly #handlers: Record<string, (...values: never[]) => unknown>;
  /** Apps and token scopes that the result of `load` contains. */
  readonly #known = new WeakSet<OwnedItem>();
  readonly #kinds = new ScopeKinds();
  /** Receives the kinds of items that the host can use from outside. */
  readonly #items = new Items();
  #code: ModuleCode | undefined;
  #made: Instance | undefined;

  constructor({ source, loadTimeout, kind, host, handlers = {}, listen }: ProgramOptions) {
    this.#source = source;
    this.#loadTimeout = loadTimeout;
    this.#kind = kind;
    this.#refuse = refusalIn(kind);
    this.#handlers = {
      ...handlers,
      ping: () => process.memoryUsage().external,
      describe: () => this.#describe(),
      load: (task: WorkerTask) => this.#load(task),
    };
    this.#channel = new Channel(host, this.#handlers);
    this.#log = logTo((lines) => this.#channel.call("log", lines));
    this.#http = new WorkerHttp(this.#log, this.#kinds, listen);
    const fault = (error: unknown) => this.#channel.notify("fault", "removing what it provides", serializeError(error));
    this.#items.handle("http-provider", {
      added: (item) => this.#addApp(item as OwnedItem<HttpProvider>),
      removed: (item) => this.#http.remove(item as OwnedItem<HttpProvider>),
      fault,
    });
    this.#items.handle(SCOPES, {
      added: (item) => this.#addScopes(item as OwnedItem<TokenScopeItem>),
      removed: (item) => this.#kinds.remove(item as OwnedItem<TokenScopeItem>),
      fault,
    });
  }

  get channel(): Channel {
    return this.#channel;
  }

  /** Reports errors that nothing else catches. */
  guard(): void {
    const stray = (error: unknown) => this.#made?.fault("running code that is not awaited", error);
    const uncaught = (error: unknown) => {
      if (this.#made?.uncaught(error) !== true) stray(error);
    };
    const uncaughtException = (error: unknown) => {
      uncaught(error);
      leaveFailed();
    };
    guardListeners({ unhandledRejection: stray, uncaughtException }, uncaught);
  }

  async #describe(): Promise<Described> {
    const files = new Set<string>();
    this.#code = await readCode(this.#source, this.#loadTimeout, files);
    const { options, depends, global, shared = false, sticky, permissions, hints } = this.#code;
    return { options, depends, global, shared, sticky, permissions, hints, files: [...files] };
  }

  async #load(task: WorkerTask): Promise<Loaded> {
    this.#code ??= await readCode(this.#source, this.#loadTimeout);
    const events = new Set<string>();
    const hooked = (event: string) => {
      if (events.has(event)) return;
      events.add(event);
      if (this.#made?.phase === "loaded") this.#channel.notify("listen", event);
    };
    if (task.restriction !== undefined) {
      reportPermissions((what, item) => this.#channel.notify("permission", what, item));
    }
    const context = environmentFor(task, {
      name: this.#source.name,
      kind: this.#kind,
      channel: this.#channel,
      log: this.#log,
      items: this.#items,
      http: this.#http,
      hooked,
    });
    const own = new Instance(this.#code, task.host, context, { reloading: task.reloading });
    this.#made = own;
    const { module } = own;
    Object.assign(this.#handlers, {
      serve: (serving: Serving) => this.#http.serve(serving, appsOf(own)),
      commit: () => own.commit(),
      ready: () => own.ready(),
      save: () => module.save?.(),
      restore: (saved: unknown) => module.restore?.(saved),
      leave: (closeCode: number) => Promise.all([this.#http.leave(closeCode), ...own.withdraw()]).then(() => undefined),
      unload: (seconds: number) => own.close(new Deadline(seconds)),
      call: (path: readonly string[], values: readonly unknown[]) => callAt(own.exports, path, values),
      event: (event: string, data: unknown) => context.bus.deliver(event, data),
    });
    this.#reportStatus(own);
    await own.run(() => task.hosts);
    const fields = ["save", "restore"] as const;
    const apps = appsOf(own);
    const scopes = own.itemsOf(SCOPES) as OwnedItem<TokenScopeItem>[];
    for (const item of [...apps, ...scopes]) this.#known.add(item);
    return {
      exports: shapeOf(own.exports),
      global: own.host === "*",
      serves: this.#http.isUsed || apps.length > 0,
      apps: apps.map(appOf),
      scopes: scopes.map((item) => this.#namedScopes(item)),
      events: [...events],
      has: fields.filter((name) => module[name] !== undefined),
    };
  }

  /** Sends each status of the module to the host. */
  #reportStatus(own: Instance): void {
    const setStatus = own.module.set_status.bind(own.module);
    let isNoting = false;
    const note = () => {
      isNoting = false;
      this.#channel.notify("note", own.note);
    };
    Object.defineProperty(own.module, "set_status", {
      value: (...status: Parameters<typeof setStatus>) => {
        setStatus(...status);
        // Only the last of several changes in one tick is sent to the host.
        if (!isNoting) queueMicrotask(note);
        isNoting = true;
      },
    });
  }

  /** Adds an app, and reports it to the host if the module provides it after it is loaded. */
  #addApp(item: OwnedItem<HttpProvider>): void {
    this.#http.add(item);
    if (!this.#known.has(item)) this.#channel.notify("provide", appOf(item));
  }

  /**
   * Declares token scopes for `request.token.allows` here. The host makes its own declaration from
   * the result of `load`.
   */
  #addScopes(item: OwnedItem<TokenScopeItem>): void {
    if (!this.#known.has(item)) {
      throw this.#refuse("declare token scopes after it is loaded", "declare them in the module's function");
    }
    this.#kinds.add(item);
  }

  #namedScopes({ item }: OwnedItem<TokenScopeItem>): NamedTokenScopes {
    if ("parse" in item) {
      const remedy = "give them fixed names: { kind, help, accesses }";
      throw this.#refuse(
        `declare token scopes with functions, which nobody outside of its ${this.#kind} can call`,
        remedy,
      );
    }
    const { kind, help, accesses } = item;
    return { kind, help, ...(accesses && { accesses }) };
  }
}

function appsOf(own: Instance): OwnedItem<HttpProvider>[] {
  return own.itemsOf("http-provider") as OwnedItem<HttpProvider>[];
}

function appOf({ item, owner }: OwnedItem<HttpProvider>): ProvidedApp {
  const { route, middleware } = item;
  const settings = appSettings.flatMap((field) => (item[field] === undefined ? [] : [[field, item[field]]]));
  return {
    host: owner.host,
    keys: route && Object.entries(route).flatMap(([key, value]) => (value === undefined ? [] : [key])),
    hasMiddleware: middleware !== undefined,
    settings: Object.fromEntries(settings),
  };
}
