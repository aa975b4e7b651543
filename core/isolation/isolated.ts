/**
 * The host's side of modules that do not run in its thread. Each instance runs in a worker thread,
 * or in a sandboxed process.
 */
import type { HttpModule } from "../http/index.ts";
import type { Exchange } from "../http/lifecycle/exchange.ts";
import type { InstanceOwner, ModuleCode } from "../module/code.ts";
import { failure } from "../module/code.ts";
import { declaredPermissions } from "../module/declared.ts";
import { keyOf } from "../module/instance.ts";
import type { ModuleSource } from "../module/locate.ts";
import { grantedTo, type ModuleRights } from "../module/rights.ts";
import { Authority } from "../permissions/index.ts";
import { deserializeError, type SerializedError } from "../relay/errors.ts";
import { randomToken } from "../relay/inner_request.ts";
import { SchemaFault } from "../relay/message_schema.ts";
import { sandboxUnavailable } from "../sandbox/index.ts";
import type { HttpProvider, Module } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { REQUEST_STEP } from "../util/usage.ts";
import { callAt, functionsOf, isFunctionAt, mirrorOf, type Shape, shapeOf } from "./exports.ts";
import { Forwarder } from "./forward.ts";
import type { Described, ProvidedApp, Serving, SourceFile } from "./messages.ts";
import { SandboxProcess } from "./process.ts";
import {
  eventName,
  MAX_ITEMS,
  readApp,
  readItem,
  readKind,
  readLines,
  readLoaded,
  readNote,
  readOption,
  readPath,
  readValues,
} from "./received.ts";
import {
  appFault,
  eventRemedy,
  hookRemedy,
  loadedFault,
  mayAnnounce,
  mayHook,
  optionsFault,
  type RuledNames,
} from "./rules.ts";
import type { ModuleRunner } from "./runner.ts";
import { type RunnerKind, refusalIn } from "./runner_kind.ts";
import { countReported, countVariables, type IsolatedRights, type IsolationDeps, othersOf, taskOf } from "./task.ts";
import { WorkerThread } from "./thread.ts";

export type { IsolationDeps } from "./task.ts";

/** Milliseconds that a worker or sandbox which has evaluated a file waits for an instance. */
const MAX_SPARE_MS = 10_000;

/** Milliseconds between two log lines about the same limit. */
const NOTICE_MS = 60_000;
/**
 * Maximum number of routes of all apps of an instance. The host adds them without a pause: 20,000
 * took it a second.
 */
const MAX_ROUTES = 5000;

/** Maximum number of calls of other modules that an instance may wait for. */
const MAX_CALLS = 1000;

/**
 * Evaluates a module's file in a worker or in a sandbox. Resolves to code that runs each instance
 * of the module in one of its own.
 * @throws {ModhostError} MODULE_FAILED, MODULE_INVALID, ISOLATED, SANDBOXED, SANDBOX_UNAVAILABLE,
 * PERMISSION_DENIED
 */
export async function isolatedCode(
  source: ModuleSource,
  deps: IsolationDeps,
  rights: ModuleRights,
): Promise<ModuleCode> {
  const { file, name } = source;
  const kind = kindOf(rights);
  const refuse = refusalIn(kind);
  if (file === undefined) {
    throw refuse(`be a value (${name})`, `write it into a file: only a file can be loaded in a ${kind}`);
  }
  const reason = kind === "sandbox" ? sandboxUnavailable() : undefined;
  if (reason !== undefined) throw new ModhostError("SANDBOX_UNAVAILABLE", { reason });
  const isolated: IsolatedRights = { rights, authority: authorityOf(name, deps, rights) };
  const create = () => runnerOf({ ...source, file }, deps, isolated);
  const described = create();
  const code = await described
    .describe()
    .then((found) => admitted(source, found, isolated, deps))
    .catch(async (error: unknown) => {
      await described.end();
      throw error;
    });
  // The first instance runs where the file was evaluated.
  let spare: ModuleRunner | undefined = described;
  const unused = setTimeout(() => {
    void spare?.end();
    spare = undefined;
  }, MAX_SPARE_MS).unref();
  const load = (module: Module, owner: InstanceOwner) => {
    clearTimeout(unused);
    const runner = spare?.isAlive ? spare : create();
    spare = undefined;
    return new Isolated({ code, runner, isolated, module, owner, deps }).load();
  };
  return { source, load, ...code };
}

const kindOf = ({ run }: ModuleRights): RunnerKind => (run === "sandboxed" ? "sandbox" : "worker");

function runnerOf(source: SourceFile, deps: IsolationDeps, isolated: IsolatedRights): ModuleRunner {
  const Runner = kindOf(isolated.rights) === "sandbox" ? SandboxProcess : WorkerThread;
  return new Runner(source, deps, isolated);
}

function authorityOf(module: string, { ledger, context }: IsolationDeps, rights: ModuleRights): Authority {
  const { settings, folders } = rights;
  const warn = (text: string) => context.log.of(module, "*").warn("%s", text);
  return new Authority({ module, folders, granted: grantedTo(rights), isAudited: settings.audit, ledger, warn });
}

/**
 * Checks the declarations of a module against its rights before the host acts on them.
 * @throws {ModhostError} MODULE_FAILED, MODULE_INVALID, PERMISSION_DENIED
 */
function admitted(
  source: ModuleSource,
  described: Described,
  { rights, authority }: IsolatedRights,
  deps: IsolationDeps,
): Described {
  const { name } = source;
  const { grant } = rights.settings;
  const exported = Object.keys(described.permissions).length === 0 ? undefined : described.permissions;
  const permissions = declaredPermissions(source, exported);
  deps.ledger.declare(name, permissions);
  // A dependency is loaded for this module, so that a grant must name it.
  for (const module of described.depends) {
    const isNamed = Object.hasOwn(grant?.call ?? {}, module);
    if (module !== "http" && !isNamed) authority.depend(module, permissions);
  }
  const kind = kindOf(rights);
  const granted = grant?.options ?? [];
  const fault = kind === "sandbox" ? optionsFault(name, described.options, granted, othersOf(name, deps)) : undefined;
  if (fault !== undefined) throw failure(source, "being imported", refusalIn(kind)(...fault));
  return { ...described, permissions };
}

const POSTS =
  "posts messages to its parent thread (parentPort), which are dropped: use what its function returns, or events, instead";

interface IsolatedParts {
  readonly code: Described;
  readonly runner: ModuleRunner;
  readonly isolated: IsolatedRights;
  readonly module: Module;
  readonly owner: InstanceOwner;
  readonly deps: IsolationDeps;
}

/** One instance of a module that runs in a worker or a sandbox. */
class Isolated {
  readonly #code: Described;
  readonly #runner: ModuleRunner;
  readonly #isolated: IsolatedRights;
  /** The host trusts an isolated module, and checks what a sandboxed one sends. */
  readonly #isSandboxed: boolean;
  readonly #module: Module;
  readonly #owner: InstanceOwner;
  readonly #deps: IsolationDeps;
  readonly #address: { readonly path: string; readonly token: string };
  readonly #forwarder: Forwarder;
  /** The exports of the modules that this one depends on. */
  readonly #dependencies = new Map<string, { readonly exported: unknown; readonly shape: Shape }>();
  /** Events that it hooks. */
  readonly #events = new Set<string>();
  #apps = 0;
  #routes = 0;
  #calls = 0;
  #left: Promise<unknown> | undefined;
  #isEnding = false;

  constructor({ code, runner, isolated, module, owner, deps }: IsolatedParts) {
    this.#code = code;
    this.#runner = runner;
    this.#isolated = isolated;
    this.#isSandboxed = runner.kind === "sandbox";
    this.#module = module;
    this.#owner = owner;
    this.#deps = deps;
    this.#address = { path: runner.path, token: randomToken() };
    this.#forwarder = new Forwarder(this.#address, runner.channel, (closeCode) => void this.#leave(closeCode), {
      withholdsTokens: this.#isSandboxed,
      requests: runner.requests,
      malformed: (reason) => void runner.end(reason),
    });
  }

  /**
   * Runs the code, and repeats its declarations in the host. Resolves to the exports for
   * dependents.
   */
  async load(): Promise<unknown> {
    const module = this.#module;
    const { channel, source, kind } = this.#runner;
    module.on_release(kind, () => this.#end(), kind);
    this.#owner.incident = this.#deps.incidents.take(this.#key);
    this.#owner.sandbox = this.#runner.layers;
    void this.#runner.ended.then((reason) => this.#ended(reason));
    void this.#runner.posted.then(() => this.#owner.advise(POSTS));
    this.#runner.serve(this.#handlers());
    for (const name of this.#code.depends) this.#depend(name);
    const { host, reloading = false } = this.#owner;
    const depends = Object.fromEntries([...this.#dependencies].map(([name, { shape }]) => [name, shape]));
    countVariables(this.#isolated, this.#code.permissions);
    const own = { options: this.#code.options, host, reloading, depends };
    const task = taskOf(source.name, own, this.#deps, this.#isolated);
    const loaded = readLoaded(await channel.call("load", task), "what it provides");
    const fault = this.#isSandboxed ? loadedFault(source.name, loaded, this.#code.depends, this.#names()) : undefined;
    if (fault !== undefined) throw refusalIn(kind)(...fault);
    if (loaded.global && module.host !== "*") module.set_global();
    if (loaded.serves) {
      const { settings } = module.depends<HttpModule>("http");
      const serving: Serving = { ...this.#address, settings: { ...settings }, grace: this.#deps.grace() };
      await channel.call("serve", serving);
    }
    // This effect is undone before the others, so that the code ends its requests while the host
    // waits for them.
    this.#owner.add({ kind: "item", label: kind, activate: () => this.#activate() });
    for (const scopes of loaded.scopes) module.provides("token-scope", scopes);
    for (const event of loaded.events) this.#listen(event);
    for (const app of loaded.apps.filter(({ host }) => host === module.host)) this.#provide(module, app);
    if (loaded.apps.some(({ host }) => host !== module.host)) {
      module.add_host = (view) => {
        for (const app of loaded.apps.filter(({ host }) => host === view.host)) this.#provide(view, app);
      };
    }
    module.ready = () => channel.call("ready");
    if (loaded.has.includes("save")) module.save = () => channel.call("save");
    if (loaded.has.includes("restore")) module.restore = (saved) => channel.call("restore", saved);
    module.unload = () => (this.#runner.isAlive ? channel.call("unload", this.#deps.grace() + 1) : undefined);
    return mirrorOf(loaded.exports, (path, values) => channel.call("call", path, values));
  }

  #names(): RuledNames {
    const { config } = this.#deps.context;
    const tables = [undefined, ...config.hosts()].map((host) => config.value("http_paths", host));
    const placed = new Set(tables.flatMap((paths) => Object.keys(paths ?? {})));
    const enabled = this.#deps.hostsOf(this.#runner.source.name);
    const closedHosts = enabled.length === 0 ? [] : config.hosts().filter((host) => !enabled.includes(host));
    return { others: this.#others, placed, closedHosts };
  }

  get #others(): readonly string[] {
    return othersOf(this.#runner.source.name, this.#deps);
  }

  #depend(name: string): void {
    const exported = this.#module.depends(name);
    if (name === "http") return;
    const shape = shapeOf(exported);
    const { authority } = this.#isolated;
    // A sandboxed module gets values only with all functions.
    const isWhole = !this.#isSandboxed || authority.isAudited || authority.allows({ kind: "call", item: `${name}.*` });
    this.#dependencies.set(name, { exported, shape: isWhole ? shape : functionsOf(shape) });
  }

  #activate(): () => Promise<unknown> {
    const failed = (error: unknown) => this.#owner.fault("adding what it provides", error);
    void this.#runner.channel.call("commit").catch(failed);
    this.#runner.watch(this.#module.get_option_period("isolated_timeout") ?? 10, {
      nearly: (reason) => void this.#retire(reason),
      noticed: (reason) => this.#notice(reason),
    });
    return () => this.#leave();
  }

  get #key(): string {
    return keyOf(this.#runner.source.name, this.#owner.host);
  }

  /** Lets a fresh instance take over, because this one is near a limit. */
  async #retire(reason: string): Promise<void> {
    const { incidents, retire } = this.#deps;
    if (this.#isEnding || !incidents.mayRetire(this.#key)) return;
    const { log } = this.#module;
    log.warn("is replaced by a fresh %s: %s", this.#runner.kind, reason);
    incidents.record(this.#key, `was replaced by a fresh ${this.#runner.kind}: ${reason}`);
    try {
      await retire(this.#owner);
    } catch (error) {
      incidents.take(this.#key);
      log.warn("could not be replaced, and goes on: %s", reasonOf(error));
    }
  }

  /** Shows the operator that a limit applies, and logs it from time to time. */
  #notice(reason: string): void {
    const now = Date.now();
    const { incident } = this.#owner;
    if (incident?.text === reason && now - incident.at < NOTICE_MS) return;
    this.#owner.incident = { text: reason, at: now };
    this.#module.log.warn("%s", reason);
  }

  /** Provides an app that the module has added after it was loaded. */
  #provideLate(received: unknown): void {
    try {
      const app = readApp(received, "an app");
      const refuse = refusalIn(this.#runner.kind);
      const fault = this.#isSandboxed ? appFault(this.#runner.source.name, app, this.#names()) : undefined;
      if (fault !== undefined) throw refuse(...fault);
      if (app.host !== this.#module.host) {
        const what = `provide an app of the host ${app.host} after it is loaded`;
        throw refuse(what, "provide it in the module's function, or in add_host");
      }
      this.#provide(this.#module, app);
    } catch (error) {
      this.#owner.fault("adding what it provides", error);
    }
  }

  /** Returns the functions that the code may call. A call of another form ends it. */
  #handlers(): Record<string, (...values: never[]) => unknown> {
    const handlers: Record<string, (...values: readonly unknown[]) => unknown> = {
      log: (lines) => {
        for (const { level, text, fields } of readLines(lines, "its log"))
          if (this.#runner.lines?.take() !== false) this.#module.log(level, fields, "%s", text);
      },
      fault: (step, error) => {
        const { usage } = this.#owner;
        const name = readNote(step, "the step of a fault");
        if (name === REQUEST_STEP) usage.requestFailed(deserializeError(error as SerializedError));
        else usage.fault(name, deserializeError(error as SerializedError));
      },
      provide: (app) => this.#provideLate(app),
      note: (text) => {
        this.#owner.note = text === undefined ? undefined : readNote(text, "its status");
      },
      announce: (event, data, to) => this.#announce(eventName(event, "an event"), data, to),
      listen: (event) => this.#listen(eventName(event, "an event")),
      read: (option) => {
        const { authority } = this.#isolated;
        const permission = { kind: "options", item: readOption(option, "an option") } as const;
        authority.count(permission, authority.allows(permission));
      },
      permission: (what, item) =>
        countReported(this.#isolated, readKind(what, "a kind of permissions"), readItem(item, "a permission")),
      depend: (name, path, values) =>
        this.#call(eventName(name, "the name of a module"), readPath(path, "a path"), readValues(values, "the values")),
    };
    const checked = Object.entries(handlers).map(([name, handler]) => [
      name,
      (...values: readonly unknown[]) => {
        try {
          return handler(...values);
        } catch (error) {
          if (error instanceof SchemaFault) void this.#runner.end(`it sent a malformed message: ${error.message}`);
          throw error;
        }
      },
    ]);
    return Object.fromEntries(checked);
  }

  #announce(event: string, data: unknown, to: unknown): void {
    const { name } = this.#runner.source;
    const host = to === undefined ? undefined : eventName(to, "the host of an event");
    if (this.#isSandboxed && !mayAnnounce(name, event, this.#others)) {
      void this.#runner.end(`it announced the event ${event}, which is not its own: ${eventRemedy(name)}`);
    } else this.#module.announce_event(event, data, host);
  }

  async #call(name: string, path: readonly string[], values: readonly unknown[]): Promise<unknown> {
    const { exported, shape } = this.#dependencies.get(name) ?? {};
    if (!isFunctionAt(shape, path)) throw new TypeError(`${name} exports no function ${path.join(".")}`);
    this.#isolated.authority.use({ kind: "call", item: `${name}.${path.join(".")}` });
    if (this.#calls >= MAX_CALLS) throw new Error(`More than ${MAX_CALLS} calls of other modules are pending`);
    this.#calls += 1;
    try {
      return await callAt(exported, path, values);
    } finally {
      this.#calls -= 1;
    }
  }

  #listen(event: string): void {
    const { channel, kind, source } = this.#runner;
    if (this.#events.has(event) || this.#events.size >= MAX_ITEMS) return;
    if (this.#isSandboxed && !mayHook(source.name, this.#code.depends, event, this.#others)) {
      void this.#runner.end(`it hooked ${event}: ${hookRemedy(source.name)}`);
      return;
    }
    this.#events.add(event);
    this.#module.hook(event, (data: unknown) => {
      try {
        channel.notify("event", event, data);
      } catch (error) {
        this.#owner.advise(`cannot receive the event ${event} in its ${kind}: ${reasonOf(error)}`);
      }
    });
  }

  #provide(module: Module, { keys, hasMiddleware, settings }: ProvidedApp): void {
    this.#apps += 1;
    if (this.#apps > MAX_ITEMS) throw new Error(`More than ${MAX_ITEMS} apps`);
    this.#routes += keys?.length ?? 0;
    if (this.#routes > MAX_ROUTES) throw new Error(`More than ${MAX_ROUTES} routes`);
    const { handle, upgrade } = this.#forwarder;
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

  /** Resolves when the requests and websockets of the code have ended. */
  #leave(closeCode = 1001): Promise<unknown> {
    this.#left ??= this.#runner.channel.call("leave", closeCode).catch(() => undefined);
    return this.#left;
  }

  async #end(): Promise<void> {
    this.#isEnding = true;
    await this.#runner.end();
    await this.#runner.ended;
  }

  #ended(reason: string): void {
    this.#forwarder.close();
    if (this.#isEnding) return;
    this.#deps.incidents.record(this.#key, `was restarted: ${reason}`);
    this.#deps.ended(this.#owner, reason);
  }
}
