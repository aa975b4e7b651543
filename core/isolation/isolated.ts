/**
 * The host's side of modules that do not run in its thread. Each instance runs in a worker thread,
 * or in a sandboxed process.
 */
import type { HttpModule } from "../http/index.ts";
import type { InstanceOwner, ModuleCode } from "../module/code.ts";
import { failure } from "../module/code.ts";
import { declaredPermissions } from "../module/declared.ts";
import { keyOf } from "../module/instance.ts";
import type { ModuleSource } from "../module/locate.ts";
import { grantedTo, type ModuleRights } from "../module/rights.ts";
import { Authority } from "../permissions/index.ts";
import { randomToken } from "../relay/inner_request.ts";
import { sandboxUnavailable } from "../sandbox/index.ts";
import type { Module } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { mirrorOf } from "./exports.ts";
import { Forwarder } from "./forward.ts";
import type { Described, Serving, SourceFile } from "./messages.ts";
import { ModuleCalls } from "./module_calls.ts";
import { SandboxProcess } from "./process.ts";
import { readLoaded } from "./received.ts";
import { loadedFault, optionsFault } from "./rules.ts";
import type { ModuleRunner } from "./runner.ts";
import { type RunnerKind, refusalIn } from "./runner_kind.ts";
import { type Spares, spareKey } from "./spares.ts";
import { countVariables, type IsolatedRights, type IsolationDeps, othersOf, taskOf } from "./task.ts";
import { WorkerThread } from "./thread.ts";

export interface IsolatedDeps extends IsolationDeps {
  /** The processes that wait for sandboxed modules. */
  readonly spares: Spares;
}

/** Milliseconds that a worker or sandbox which has evaluated a file waits for an instance. */
const MAX_UNUSED_MS = 10_000;

/** Milliseconds between two log lines about the same limit. */
const NOTICE_MS = 60_000;

/**
 * Evaluates a module's file in a worker or in a sandbox. Resolves to code that runs each instance
 * of the module in one of its own.
 * @throws {ModhostError} MODULE_FAILED, MODULE_INVALID, ISOLATED, SANDBOXED, SANDBOX_UNAVAILABLE,
 * PERMISSION_DENIED
 */
export async function isolatedCode(
  source: ModuleSource,
  deps: IsolatedDeps,
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
  const create = () => takeRunner({ ...source, file }, deps, isolated);
  const described = create();
  const code = await described
    .describe()
    .then((found) => admitted(source, found, isolated, deps))
    .catch(async (error: unknown) => {
      await described.end();
      throw error;
    });
  // The first instance runs where the file was evaluated.
  let evaluated: ModuleRunner | undefined = described;
  const unused = setTimeout(() => {
    void evaluated?.end();
    evaluated = undefined;
  }, MAX_UNUSED_MS).unref();
  const load = (module: Module, owner: InstanceOwner) => {
    clearTimeout(unused);
    const runner = evaluated?.isAlive ? evaluated : create();
    evaluated = undefined;
    return new Isolated({ code, runner, isolated, module, owner, deps }).load();
  };
  return { source, load, ...code };
}

const kindOf = ({ run }: ModuleRights): RunnerKind => (run === "sandboxed" ? "sandbox" : "worker");

/** Whether the operator wants a process to wait for the module. */
const wantsSpare = ({ run, settings }: ModuleRights): boolean => run === "sandboxed" && settings.spare;

/** Returns a worker or sandbox in which the code can run: the one that waits, or a new one. */
function takeRunner(source: SourceFile, deps: IsolatedDeps, isolated: IsolatedRights): ModuleRunner {
  const spare = wantsSpare(isolated.rights)
    ? deps.spares.take(source.name, spareKey(source, deps, isolated))
    : undefined;
  const runner = spare ?? newRunner(source, deps, isolated);
  runner.begin();
  return runner;
}

function newRunner(source: SourceFile, deps: IsolationDeps, isolated: IsolatedRights): ModuleRunner {
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
  readonly deps: IsolatedDeps;
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
  readonly #deps: IsolatedDeps;
  readonly #address: { readonly path: string; readonly token: string };
  readonly #forwarder: Forwarder;
  readonly #calls: ModuleCalls;
  #left: Promise<unknown> | undefined;
  #isEnding = false;
  #hasCrashed = false;
  /** Lets go of the process that waits to take over. */
  #releaseSpare: ((hasCrashed: boolean) => void) | undefined;

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
    const { depends } = code;
    this.#calls = new ModuleCalls({ runner, isolated, module, owner, deps, depends, forwarder: this.#forwarder });
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
    this.#runner.serve(this.#calls.handlers());
    const shapes = this.#code.depends.map((name) => [name, this.#calls.depend(name)] as const);
    const { host, reloading = false } = this.#owner;
    const depends = Object.fromEntries(shapes.flatMap(([name, shape]) => (shape === undefined ? [] : [[name, shape]])));
    countVariables(this.#isolated, this.#code.permissions);
    const own = { options: this.#code.options, host, reloading, depends };
    const task = taskOf(source.name, own, this.#deps, this.#isolated);
    const loaded = readLoaded(await channel.call("load", task), "what it provides");
    const fault = this.#isSandboxed
      ? loadedFault(source.name, loaded, this.#code.depends, this.#calls.names())
      : undefined;
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
    for (const event of loaded.events) this.#calls.listen(event);
    for (const app of loaded.apps.filter(({ host }) => host === module.host)) this.#calls.provide(module, app);
    if (loaded.apps.some(({ host }) => host !== module.host)) {
      module.add_host = (view) => {
        for (const app of loaded.apps.filter(({ host }) => host === view.host)) this.#calls.provide(view, app);
      };
    }
    module.ready = () => channel.call("ready");
    if (loaded.has.includes("save")) module.save = () => channel.call("save");
    if (loaded.has.includes("restore")) module.restore = (saved) => channel.call("restore", saved);
    module.unload = () => (this.#runner.isAlive ? channel.call("unload", this.#deps.grace() + 1) : undefined);
    return mirrorOf(loaded.exports, (path, values) => channel.call("call", path, values));
  }

  #activate(): () => Promise<unknown> {
    const failed = (error: unknown) => this.#owner.fault("adding what it provides", error);
    this.#keepSpare();
    void this.#runner.channel.call("commit").catch(failed);
    this.#runner.watch(this.#module.get_option_period("isolated_timeout") ?? 10, {
      nearly: (reason) => void this.#retire(reason),
      noticed: (reason) => this.#notice(reason),
    });
    return () => this.#leave();
  }

  #keepSpare(): void {
    const { rights } = this.#isolated;
    if (!wantsSpare(rights)) return;
    const { source, requests } = this.#runner;
    const { name } = source;
    const { spares, context } = this.#deps;
    this.#owner.hasSpare = () => spares.isReady(name);
    this.#releaseSpare = spares.keep({
      name,
      log: context.log.of(name, "*"),
      key: () => spareKey(source, this.#deps, this.#isolated),
      create: () => newRunner(source, this.#deps, this.#isolated),
      isQuiet: () => requests.isIdle,
      isExpected: () => context.states().some((state) => state.name === name),
    });
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

  /** Resolves when the requests and websockets of the code have ended. */
  #leave(closeCode = 1001): Promise<unknown> {
    this.#left ??= this.#runner.channel.call("leave", closeCode).catch(() => undefined);
    return this.#left;
  }

  async #end(): Promise<void> {
    this.#isEnding = true;
    this.#releaseSpare?.(this.#hasCrashed);
    await this.#runner.end();
    await this.#runner.ended;
  }

  #ended(reason: string): void {
    this.#forwarder.close();
    if (this.#isEnding) return;
    this.#hasCrashed = true;
    this.#deps.incidents.record(this.#key, `was restarted: ${reason}`);
    this.#deps.ended(this.#owner, reason);
  }
}
