import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Config } from "../config/index.ts";
import type { HookFailed } from "../events.ts";
import { appName } from "../http/routing/app_urls.ts";
import type {
  EventHandler,
  ItemOf,
  ListeningPort,
  Module,
  ModuleLog,
  ModuleState,
  OptionDeclaration,
  OwnedItem,
  Server,
  Timer,
  Tokens,
} from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { moduleName } from "../util/module_name.ts";
import { account, type Usage } from "../util/usage.ts";
import type { ModuleCode } from "./code.ts";
import { eventHint, optionHint } from "./hints.ts";
import { importNamed } from "./imports.ts";
import type { Effect, EffectHandle, Release } from "./ledger.ts";
import type { Dependent, ModuleContext } from "./module_context.ts";
import { OptionReader } from "./option_reader.ts";
import { sharedPath } from "./shared.ts";
import { httpUrl } from "./url.ts";

/** The instance that a module object belongs to, with the members that the object uses. */
export interface ModuleOwner extends Dependent {
  host: string;
  readonly code: ModuleCode;
  /** The configuration in force for it; a change of the configuration replaces it. */
  readonly config: Config;
  readonly reloading: boolean | undefined;
  /** Keys of the instances it depends on. */
  readonly depends: Set<string>;
  readonly usage: Usage;
  /** Kinds that the module has called `provides` with. */
  readonly provided: Set<string>;
  missing: string | undefined;
  note: string | undefined;
  noteLevel: "info" | "warn" | "error" | undefined;
  add(effect: Effect): EffectHandle;
  recordRelease(kind: string, label: string, release: Release): EffectHandle;
  advise(text: string): void;
  fault(step: string, error: unknown): void;
  /** The reason why the module cannot change the server now: the host is waiting for its code. */
  readonly occupied: string | undefined;
  /** Records that the module reads an option, for a host ("*": the server). */
  read(option: string, host: string): void;
  /** Makes the module global: it no longer belongs to a single host. */
  becomeGlobal(): void;
  /** @throws {ModhostError} MODULE_UNLOADED */
  assertLive(): void;
}

/** The module object: each call that affects the host is an effect in the instance's ledger. */
export class ModuleApi implements Module {
  load: Module["load"];
  ready: Module["ready"];
  save: Module["save"];
  restore: Module["restore"];
  unload: Module["unload"];
  changed: Module["changed"];
  add_host: Module["add_host"];
  readonly name: string;
  readonly #instance: ModuleOwner;
  readonly #context: ModuleContext;
  readonly #options: OptionReader;
  /** Set for the object that a global module gets for one host. */
  readonly #host: string | undefined;
  readonly #shared = new Map<string, Record<string, unknown>>();
  readonly #hookFailed: HookFailed = (error, event) =>
    this.log.error("A hook of %s failed: %s", event, reasonOf(error));
  #log: ModuleLog | undefined;
  #server: Server | undefined;

  constructor(instance: ModuleOwner, context: ModuleContext, host?: string) {
    this.name = instance.name;
    this.#instance = instance;
    this.#context = context;
    this.#host = host;
    account(this, instance.usage);
    this.#options = new OptionReader(
      () => instance.config,
      () => this.host,
      (option, host, isDeclared) => {
        context.admit?.("option", option);
        instance.read(option, host);
        const hint = isDeclared ? undefined : optionHint(option, instance.code.options);
        if (hint !== undefined) instance.advise(hint);
      },
    );
  }

  get host(): string {
    return this.#host ?? this.#instance.host;
  }

  get reloading(): boolean | undefined {
    return this.#instance.reloading;
  }

  get log(): ModuleLog {
    this.#log ??= this.#context.log.of(this.name, this.host);
    return this.#log;
  }

  mask(text: string): string {
    return this.#instance.config.mask(text);
  }

  // ------------------------------------------------------------------------------------------------
  // other modules

  depends<T = unknown>(name: string): T {
    const instance = this.#instance;
    instance.assertLive();
    const dependency = moduleName(name);
    const found = this.#context.find(dependency, instance);
    if (found !== undefined) {
      instance.depends.add(found.key);
      return found.exports as T;
    }
    const isLoading = instance.phase === "loading";
    if (isLoading) instance.missing ??= dependency;
    const reason = isLoading
      ? "it will be loaded first, then this module is loaded again"
      : "a module can load others only while it loads";
    throw new ModhostError("MODULE_DEPENDENCY", { name: this.name, dependency, reason });
  }

  provides(kind: string, item: object): () => Promise<void> {
    this.#instance.provided.add(kind);
    return this.add_item(`${kind}-provider`, item);
  }

  add_item(kind: string, item: object): () => Promise<void> {
    if (typeof item !== "object" || item === null) throw new TypeError(`An item of kind ${kind} must be an object`);
    this.#context.admit?.("item", kind);
    const owned: OwnedItem = { item, owner: this };
    const entry = this.#instance.add({
      kind: "item",
      label: `item ${kind}`,
      item: owned,
      activate: () => this.#context.items.add(kind, owned),
    });
    return async () => void (await entry.undo());
  }

  handle_items<Kind extends string>(
    kind: Kind,
    added: (item: OwnedItem<ItemOf<Kind>>) => void,
    removed: (item: OwnedItem<ItemOf<Kind>>) => unknown,
  ): void {
    this.#context.admit?.("receiver", kind);
    const fault = (error: unknown) => this.#instance.fault(`handling items of kind ${kind}`, error);
    const { usage } = this.#instance;
    const own = {
      added: (item: OwnedItem) => usage.run(added, item as never),
      removed: (item: OwnedItem) => usage.run(removed, item as never),
    };
    const handlers = { ...own, fault } as Parameters<ModuleContext["items"]["handle"]>[1];
    const activate = () => this.#context.items.handle(kind, handlers, this.name);
    this.#instance.add({ kind: "receiver", label: `receiver of ${kind}`, activate });
  }

  set_global(): void {
    const instance = this.#instance;
    if (instance.phase !== "loading") throw new Error("module.set_global can be called only while the module loads");
    instance.becomeGlobal();
    this.#log = undefined;
  }

  // -------------------------------------------------------------------------------------------------------
  // events

  hook(event: string, handler: EventHandler, priority = 0): void {
    if (typeof handler !== "function") throw new TypeError(`The hook of ${event} must be a function`);
    this.#context.admit?.("hook", event);
    const hint = eventHint(event);
    if (hint !== undefined) this.#instance.advise(hint);
    const counted = this.#counted(`running a hook of ${event}`, handler as (data: unknown) => unknown);
    const activate = () => this.#context.bus.add(event, counted, priority, this.host, this.name);
    this.#instance.add({ kind: "hook", label: `hook ${event}`, activate });
  }

  /** Returns the function with its failures and time counted for the module. */
  #counted(step: string, run: (data: unknown) => unknown): EventHandler {
    const { usage } = this.#instance;
    const measured = timed(usage, run);
    const failed = (error: unknown) => usage.fault(step, error);
    return (data: unknown) => {
      try {
        const result = measured(data);
        if (result instanceof Promise) result.catch(failed);
        return result;
      } catch (error) {
        failed(error);
        throw error;
      }
    };
  }

  fire_event(event: string, data?: unknown, host = "*"): unknown {
    return this.#context.bus.fire(event, data, this.host === "*" ? host : this.host);
  }

  announce_event(event: string, data?: unknown, host = "*"): void {
    this.#context.bus.announce(event, data, this.#hookFailed, this.host === "*" ? host : this.host);
  }

  has_hooks(event: string): boolean {
    return this.#context.bus.has(event);
  }

  // ----------------------------------------------------------------------------------------
  // effects that an unload undoes

  add_timer<A extends unknown[]>(delay: number, run: (now: number, ...values: A) => unknown, ...values: A): Timer {
    const { timers } = this.#context;
    const timer = timers.create(delay, {
      run: timed(this.#instance.usage, (now: number) => run(now, ...values)),
      fault: (error) => this.#instance.fault("running a timer", error),
      ended: () => entry.forget(),
    });
    const activate = () => timers.start(timer, this.name);
    const entry = this.#instance.add({ kind: "timer", label: "timer", activate });
    return timer;
  }

  now(): number {
    return this.#context.timers.now();
  }

  on_release(label: string, release: () => unknown, kind = "release"): () => void {
    const { usage } = this.#instance;
    return this.#instance.recordRelease(kind, label, () => usage.run(release)).forget;
  }

  shared(path = ""): Record<string, unknown> {
    this.#instance.assertLive();
    const full = sharedPath(path, this.host, this.name);
    const known = this.#shared.get(full);
    if (known !== undefined) return known;
    const { table, release } = this.#context.shared.use(full, this.name);
    this.#instance.recordRelease("shared", `shared table ${full}`, release);
    this.#shared.set(full, table);
    return table;
  }

  set_status(level: "info" | "warn" | "error", text: string): void {
    this.#instance.assertLive();
    this.#instance.note = text;
    this.#instance.noteLevel = level;
    this.log(level, "%s", text);
  }

  // --------------------------------------------------------------------------------------------------------
  // files

  get_directory(): string {
    return this.#instance.code.source.directory;
  }

  load_resource(path: string): Promise<Buffer> {
    return readFile(join(this.get_directory(), path));
  }

  import_named(name: string): Promise<Record<string, unknown>> {
    return importNamed(name, this.#instance.config.directory);
  }

  data_path(): string {
    return this.#options.plain("data_path") as string;
  }

  // ------------------------------------------------------------------------------------------------------
  // options

  get_option<T = unknown>(name: string, fallback?: T): T | undefined {
    return (this.#options.plain(name) as T | undefined) ?? fallback;
  }

  get_option_string(name: string, fallback?: string): string | undefined {
    return this.#options.typed(name, "string", fallback);
  }

  get_option_number(name: string, fallback?: number, min?: number, max?: number): number | undefined {
    return this.#options.typed(name, "number", fallback, limits(min, max));
  }

  get_option_integer(name: string, fallback?: number, min?: number, max?: number): number | undefined {
    return this.#options.typed(name, "integer", fallback, limits(min, max));
  }

  get_option_boolean(name: string, fallback?: boolean): boolean | undefined {
    return this.#options.typed(name, "boolean", fallback);
  }

  get_option_period(name: string, fallback?: number | string, min?: number, max?: number): number | undefined {
    return this.#options.typed(name, "period", fallback, limits(min, max));
  }

  get_option_size(name: string, fallback?: number | string, min?: number, max?: number): number | undefined {
    return this.#options.typed(name, "size", fallback, limits(min, max));
  }

  get_option_enum<T extends string>(name: string, values: readonly T[], fallback?: T): T | undefined {
    return this.#options.typed(name, "enum", fallback, { values });
  }

  get_option_array(name: string, fallback?: readonly string[]): string[] | undefined {
    return this.#options.typed(name, "strings", fallback);
  }

  get_option_set(name: string, fallback?: readonly string[]): Set<string> | undefined {
    const list = this.get_option_array(name, fallback);
    return list && new Set(list);
  }

  get_option_inherited_set(name: string, fallback?: readonly string[]): Set<string> | undefined {
    return this.#options.inherited(name, fallback);
  }

  get_option_object(name: string, fallback?: Record<string, unknown>): Record<string, unknown> | undefined {
    return this.#options.typed(name, "object", fallback);
  }

  get_option_path(name: string, fallback?: string): string | undefined {
    return this.#options.typed(name, "path", fallback && resolve(this.get_directory(), fallback));
  }

  // --------------------------------------------------------------------------------------------------
  // the server

  http_url(app = appName(this.name), default_path?: string): string {
    const { listening } = this.#context;
    this.#context.admit?.("option", "http_external_url");
    const { config } = this.#instance;
    return httpUrl({ config, listening, host: this.host, log: this.log }, app, default_path);
  }

  tls_options(): ReturnType<Module["tls_options"]> {
    return this.#context.tls();
  }

  hosts(): readonly string[] {
    this.#instance.read("hosts", "*");
    return this.#instance.config.hosts();
  }

  listening(): readonly ListeningPort[] {
    return this.#context.listening();
  }

  modules(): readonly ModuleState[] {
    return this.#context.states();
  }

  awaits_modules(): boolean {
    return this.#context.awaits();
  }

  serves(): boolean {
    return this.#context.serves;
  }

  get server(): Server {
    this.#server ??= this.#context.server(this.#instance);
    return this.#server;
  }

  get tokens(): Tokens {
    return this.#context.tokens;
  }

  stop_server(): void {
    this.log.info("requests that the server stops");
    void this.server.stop();
  }
}

function limits(min: number | undefined, max: number | undefined): Partial<OptionDeclaration> {
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

/** Returns the function with its time on the event loop counted. */
function timed<A, R>(usage: Usage, run: (argument: A) => R): (argument: A) => R {
  return (argument) => {
    const outer = usage.enter();
    const begun = performance.now();
    try {
      return usage.run(run, argument);
    } finally {
      usage.leave(outer, begun);
    }
  };
}
