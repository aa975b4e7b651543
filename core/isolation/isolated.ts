/** The host's side of isolated modules. Each instance runs in a worker thread. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HttpModule } from "../http/index.ts";
import type { Exchange } from "../http/lifecycle/exchange.ts";
import type { InstanceOwner, ModuleCode } from "../module/code.ts";
import { declaredPermissions } from "../module/declared.ts";
import type { ModuleSource } from "../module/locate.ts";
import { grantedTo, type ModuleRights } from "../module/rights.ts";
import { Authority } from "../permissions/index.ts";
import { deserializeError, type SerializedError } from "../relay/errors.ts";
import { innerPath, randomToken } from "../relay/inner_request.ts";
import type { HttpProvider, Module, PermissionKind } from "../types.ts";
import { clipped } from "../util/clipped.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { REQUEST_STEP } from "../util/usage.ts";
import { callAt, functionsOf, isFunctionAt, mirrorOf, type Shape, shapeOf } from "./exports.ts";
import { Forwarder } from "./forward.ts";
import type { SentLine } from "./log.ts";
import type { Described, Loaded, ProvidedApp, Serving } from "./messages.ts";
import {
  countAudited,
  countVariables,
  environment,
  heapOf,
  type IsolatedRights,
  type IsolationDeps,
  isNamedFor,
  taskOf,
} from "./task.ts";
import { WorkerThread } from "./thread.ts";

export type { IsolationDeps } from "./task.ts";

/** Milliseconds that a worker which has evaluated a file waits for an instance. */
const MAX_SPARE_MS = 10_000;

/**
 * Evaluates a module's file in a worker. Resolves to code that runs each instance of the module in
 * a worker of its own.
 * @throws {ModhostError} MODULE_FAILED, MODULE_INVALID, ISOLATED, PERMISSION_DENIED
 */
export async function isolatedCode(
  source: ModuleSource,
  deps: IsolationDeps,
  rights: ModuleRights,
): Promise<ModuleCode> {
  const { file, name } = source;
  if (file === undefined) {
    const remedy = "write it into a file: only a file can be loaded in a worker";
    throw new ModhostError("ISOLATED", { what: `be a value (${source.name})`, remedy });
  }
  if (rights.run === "sandboxed") {
    throw new ModhostError("SANDBOX_UNAVAILABLE", { name, reason: "this version has no sandbox yet" });
  }
  const isolated: IsolatedRights = { rights, authority: authorityOf(name, deps, rights) };
  const env = environment(isolated);
  const described = new WorkerThread({ ...source, file }, deps, env);
  const code = await described
    .describe()
    .then((found) => admitted(source, found, isolated))
    .catch(async (error: unknown) => {
      await described.end();
      throw error;
    });
  // The first instance runs where the file was evaluated.
  let spare: WorkerThread | undefined = described;
  const unused = setTimeout(() => {
    void spare?.end();
    spare = undefined;
  }, MAX_SPARE_MS).unref();
  const load = (module: Module, owner: InstanceOwner) => {
    clearTimeout(unused);
    const thread = spare?.isAlive ? spare : new WorkerThread(described.source, deps, env);
    spare = undefined;
    return new Isolated({ code, thread, module, owner, deps, isolated }).load();
  };
  return { source, load, ...code };
}

function authorityOf(module: string, { ledger, context }: IsolationDeps, rights: ModuleRights): Authority {
  const { settings, folders } = rights;
  const warn = (text: string) => context.log.of(module, "*").warn("%s", text);
  return new Authority({ module, folders, granted: grantedTo(rights), isAudited: settings.audit, ledger, warn });
}

/**
 * Checks the declarations of a module against its rights before the host acts on them.
 * @throws {ModhostError} MODULE_INVALID, PERMISSION_DENIED
 */
function admitted(source: ModuleSource, described: Described, { rights, authority }: IsolatedRights): Described {
  const { name, file = name } = source;
  const exported = Object.keys(described.permissions).length === 0 ? undefined : described.permissions;
  const permissions = declaredPermissions(source, exported);
  // A dependency is loaded for this module, so that a grant must name it.
  for (const module of described.depends) {
    const isNamed = Object.hasOwn(rights.settings.grant?.call ?? {}, module);
    if (module !== "http" && !isNamed) authority.use({ kind: "call", item: `${module}.*` });
  }
  // A declaration under the name of another module's option would hand over its value.
  const foreign = Object.keys(described.options).find((option) => !isNamedFor(name, option));
  if (rights.run === "sandboxed" && foreign !== undefined) {
    const reason = `its option ${foreign} must begin with ${name}_, because it runs sandboxed`;
    throw new ModhostError("MODULE_INVALID", { file, reason, name });
  }
  return { ...described, permissions };
}

const POSTS =
  "posts messages to its parent thread (parentPort), which are dropped: use what its function returns, or events, instead";

interface IsolatedParts {
  readonly code: Described;
  readonly thread: WorkerThread;
  readonly module: Module;
  readonly owner: InstanceOwner;
  readonly deps: IsolationDeps;
  readonly isolated: IsolatedRights;
}

/** One instance of an isolated module. */
class Isolated {
  readonly #code: Described;
  readonly #thread: WorkerThread;
  readonly #module: Module;
  readonly #owner: InstanceOwner;
  readonly #deps: IsolationDeps;
  readonly #isolated: IsolatedRights;
  readonly #folder = mkdtempSync(join(tmpdir(), "modhost-worker-"));
  readonly #address = { path: innerPath(this.#folder, "http"), token: randomToken() };
  readonly #forwarder: Forwarder;
  /** The exports of the modules that this one depends on. */
  readonly #dependencies = new Map<string, { readonly exported: unknown; readonly shape: Shape }>();
  #left: Promise<unknown> | undefined;
  #isEnding = false;

  constructor({ code, thread, module, owner, deps, isolated }: IsolatedParts) {
    this.#code = code;
    this.#thread = thread;
    this.#module = module;
    this.#owner = owner;
    this.#deps = deps;
    this.#isolated = isolated;
    this.#forwarder = new Forwarder(this.#address, thread.channel, (closeCode) => void this.#leave(closeCode));
  }

  /**
   * Runs the code in a worker, and repeats its declarations in the host. Resolves to the exports
   * for dependents.
   */
  async load(): Promise<unknown> {
    const module = this.#module;
    const { channel } = this.#thread;
    module.on_release("worker", () => this.#end(), "worker");
    void this.#thread.ended.then((reason) => this.#ended(reason));
    void this.#thread.posted.then(() => this.#owner.advise(POSTS));
    this.#thread.serve(this.#handlers());
    for (const name of this.#code.depends) {
      const exported = module.depends(name);
      if (name !== "http") this.#dependencies.set(name, { exported, shape: this.#shapeOf(name, exported) });
    }
    countVariables(this.#isolated, this.#code.permissions);
    const { options } = this.#code;
    const { host, reloading = false } = this.#owner;
    const depends = Object.fromEntries([...this.#dependencies].map(([name, { shape }]) => [name, shape]));
    const own = { options, host, reloading, depends };
    const task = taskOf(this.#thread.source.name, own, this.#deps, this.#isolated);
    const loaded = (await channel.call("load", task)) as Loaded;
    if (loaded.global && module.host !== "*") module.set_global();
    if (loaded.serves) {
      const { settings } = module.depends<HttpModule>("http");
      const serving: Serving = { ...this.#address, settings: { ...settings }, grace: this.#deps.grace() };
      await channel.call("serve", serving);
    }
    // This effect is undone before the others, so that the worker ends its requests while the host
    // waits for them.
    this.#owner.add({ kind: "item", label: "worker", activate: () => this.#activate() });
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
    module.unload = () => (this.#thread.isAlive ? channel.call("unload", this.#deps.grace() + 1) : undefined);
    return mirrorOf(loaded.exports, (path, values) => channel.call("call", path, values));
  }

  /**
   * Returns the exports of a dependency. A sandboxed module gets values only with all functions.
   */
  #shapeOf(name: string, exported: unknown): Shape {
    const shape = shapeOf(exported);
    const { rights, authority } = this.#isolated;
    const isWhole = authority.isAudited || authority.allows({ kind: "call", item: `${name}.*` });
    return rights.run === "sandboxed" && !isWhole ? functionsOf(shape) : shape;
  }

  #activate(): () => Promise<unknown> {
    const failed = (error: unknown) => this.#owner.fault("adding what it provides", error);
    void this.#thread.channel.call("commit").catch(failed);
    this.#thread.watch(this.#module.get_option_period("isolated_timeout") ?? 10, heapOf(this.#deps));
    return () => this.#leave();
  }

  /** Provides an app that the module has added after it was loaded. */
  #provideLate(app: ProvidedApp): void {
    try {
      if (app.host !== this.#module.host) {
        const what = `provide an app of the host ${app.host} after it is loaded`;
        throw new ModhostError("ISOLATED", { what, remedy: "provide it in the module's function, or in add_host" });
      }
      this.#provide(this.#module, app);
    } catch (error) {
      this.#owner.fault("adding what it provides", error);
    }
  }

  /** Functions that the worker may call. */
  #handlers(): Record<string, (...values: never[]) => unknown> {
    const module = this.#module;
    return {
      log: (lines: readonly SentLine[]) => {
        for (const [level, text, fields = "{}"] of lines) module.log(level, JSON.parse(fields), "%s", clipped(text));
      },
      fault: (step: string, error: SerializedError) => {
        const { usage } = this.#owner;
        if (step === REQUEST_STEP) usage.requestFailed(deserializeError(error));
        else usage.fault(step, deserializeError(error));
      },
      provide: (app: ProvidedApp) => this.#provideLate(app),
      note: (text: string | undefined) => {
        this.#owner.note = text === undefined ? undefined : clipped(text);
      },
      announce: (event: string, data: unknown, to: string | undefined) => module.announce_event(event, data, to),
      read: (option: string) => {
        const { authority } = this.#isolated;
        const permission = { kind: "options", item: String(option) } as const;
        authority.handedOver(permission, authority.allows(permission));
      },
      audited: (kind: PermissionKind, item: string) => countAudited(this.#isolated, kind, String(item)),
      listen: (event: string) => this.#listen(event),
      depend: (name: string, path: readonly string[], values: readonly unknown[]) => {
        const { exported, shape } = this.#dependencies.get(name) ?? {};
        if (!isFunctionAt(shape, path)) throw new TypeError(`${name} exports no function ${path.join(".")}`);
        this.#isolated.authority.use({ kind: "call", item: `${name}.${path.join(".")}` });
        return callAt(exported, path, values);
      },
    };
  }

  #listen(event: string): void {
    this.#module.hook(event, (data: unknown) => {
      try {
        this.#thread.channel.notify("event", event, data);
      } catch (error) {
        this.#owner.advise(`cannot receive the event ${event} in its worker: ${reasonOf(error)}`);
      }
    });
  }

  #provide(module: Module, { keys, hasMiddleware, settings }: ProvidedApp): void {
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

  /** Resolves when the requests and websockets of the worker have ended. */
  #leave(closeCode = 1001): Promise<unknown> {
    this.#left ??= this.#thread.channel.call("leave", closeCode).catch(() => undefined);
    return this.#left;
  }

  async #end(): Promise<void> {
    this.#isEnding = true;
    await this.#thread.end();
    await this.#thread.ended;
  }

  #ended(reason: string): void {
    this.#forwarder.close();
    rmSync(this.#folder, { recursive: true, force: true });
    if (!this.#isEnding) this.#deps.ended(this.#owner, reason);
  }
}
