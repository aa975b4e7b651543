import { type Config, variableOf } from "../config/index.ts";
import type { Module, ModuleState, OwnedItem } from "../types.ts";
import { ModhostError, readableThrown, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import { countStarted, type Started, startedBy } from "../util/started.ts";
import { Usage } from "../util/usage.ts";
import { ModuleApi, type ModuleOwner } from "./api.ts";
import type { ModuleCode } from "./code.ts";
import { failure } from "./code.ts";
import { Deadline } from "./deadline.ts";
import { callbackHints, kindHint } from "./hints.ts";
import { type Incident, incidentNote } from "./incidents.ts";
import { type Effect, type EffectHandle, Ledger, type Release } from "./ledger.ts";
import type { ModuleContext } from "./module_context.ts";

/** Instances that are built together; undefined for those that are not built yet. */
export type Group = ReadonlyMap<string, Instance | undefined>;

/** Whether an instance is new or replaces one that is reloaded. */
export interface InstanceOptions {
  readonly reloading: boolean;
  readonly group?: Group;
}

/** The facts about an instance that a plan of a change needs. */
export interface InstanceFacts {
  readonly key: string;
  readonly name: string;
  readonly host: string;
  /** Keys of the instances it depends on. */
  readonly depends: ReadonlySet<string>;
  readonly isGlobal: boolean;
  /** Whether the module has `module.changed`. */
  readonly handlesChanges: boolean;
  /** Options that it has read: name, and the hosts for which it read them ("*": the server). */
  readonly reads: ReadonlyMap<string, ReadonlySet<string>>;
  /** The hosts for which `add_host` was called, if the module has it. */
  readonly views: readonly string[] | undefined;
}

/** Returns `name@host`, the key by which the host stores an instance. */
export const keyOf = (name: string, host: string): string => `${name}@${host}`;

/**
 * Effects with which a module acts on the host, as opposed to resources that it still needs to
 * finish its work.
 */
const acting: readonly string[] = ["item", "hook", "timer"];
/** Kinds of items that are useful even if nothing receives them now. */
const givenAnyway: ReadonlySet<string> = new Set(["metrics", "admin", "backup", "health", "start-page"]);

/** One run of a module's code for one host: its module object and all its effects. */
export class Instance implements ModuleOwner {
  readonly code: ModuleCode;
  readonly name: string;
  host: string;
  /** The configuration in force for it. */
  config: Config;
  /** Whether it belongs to the whole server, whatever hosts are configured. */
  isGlobal: boolean;
  phase: "loading" | "loaded" | "unloading" | "gone" = "loading";
  reloading: boolean | undefined;
  /** The value that dependents get. */
  exports: unknown;
  /** Keys of the instances it depends on. */
  readonly depends = new Set<string>();
  /**
   * The first module that it needed and that is not loaded. This attempt is then undone, however it
   * ended.
   */
  missing: string | undefined;
  note: string | undefined;
  /** The layers of its sandbox, if it is sandboxed. */
  sandbox: ModuleState["sandbox"] | undefined;
  /** Returns whether a process is ready to take over; set if the operator wants one. */
  hasSpare: (() => boolean) | undefined;
  /** The level of a note from `set_status`. */
  noteLevel: ModuleState["note_level"] | undefined;
  /** The reason why it was restarted, or what is wrong with it now. Its code cannot change it. */
  incident: Incident | undefined;
  /** Steps of the unload that failed or took too long so far. */
  readonly unfinished: string[] = [];
  /**
   * While loading: the instances that are built together with it, which it gets from
   * `module.depends`.
   */
  group: Group | undefined;
  readonly module: ModuleApi;
  /** Counts the time that its code takes and how often it fails. */
  readonly usage: Usage;
  /** Kinds that it has called `provides` with. */
  readonly provided = new Set<string>();
  /** Hints for the author that were logged, or that will be once the load has succeeded. */
  readonly #advice: Set<string>;
  readonly #ownFields: ReadonlySet<string>;
  readonly #context: ModuleContext;
  readonly #ledger: Ledger;
  /** Number of its life cycle steps that the host is waiting for. */
  #awaited = 0;
  /** Rejects with an uncaught error during the load. */
  readonly #failing = Promise.withResolvers<never>();
  /** Module objects for single hosts of a global module. */
  readonly #views: ModuleApi[] = [];
  /** Options that it has read: name, and the hosts for which it read them. */
  readonly #reads = new Map<string, Set<string>>();
  /**
   * Set while its effects are activated: receivers of its items may then read options through its
   * module object.
   */
  #isCommitting = false;

  constructor(code: ModuleCode, host: string, context: ModuleContext, options: InstanceOptions) {
    this.code = code;
    this.name = code.source.name;
    this.host = host;
    this.config = context.config;
    this.isGlobal = code.global;
    this.reloading = options.reloading;
    this.group = options.group;
    this.#context = context;
    this.#ledger = new Ledger((label, error) => this.#unfinished(`undoing ${label}`, error));
    this.usage = new Usage(host === "*" ? this.name : this.key);
    this.usage.failed = (step, error) => context.failed(this, step, error);
    this.module = new ModuleApi(this, context);
    this.#advice = new Set(code.hints);
    this.#ownFields = new Set(Object.keys(this.module));
    this.#failing.promise.catch(() => undefined);
  }

  get key(): string {
    return keyOf(this.name, this.host);
  }

  /** Returns the items of a kind that it has added, active or not. */
  itemsOf(kind: string): OwnedItem[] {
    return this.#ledger.items(`item ${kind}`);
  }

  /** Returns true if this is its module object, or one of those for single hosts. */
  owns(owner: Module): boolean {
    return owner === this.module || this.#views.some((view) => view === owner);
  }

  /**
   * Runs the code, then `module.load`, `add_host` for each of `hosts`, and `restore`. Nothing takes
   * effect yet.
   * @throws {ModhostError} MODULE_FAILED, also when all of it takes longer than `load_timeout`
   */
  async run(hosts: () => readonly string[], saved?: { readonly value: unknown }): Promise<void> {
    const { module } = this;
    const limit = this.#limit();
    let step = "running its default function";
    try {
      this.#requireOptions();
      this.exports = await limit(() => this.code.load(module, this));
      step = "running module.load";
      await limit(() => module.load?.());
      const added = module.add_host !== undefined && this.host === "*" ? hosts() : [];
      for (const host of added) {
        step = `adding the host ${host}`;
        const view = new ModuleApi(this, this.#context, host);
        this.#views.push(view);
        await limit(() => module.add_host?.(view, host === added.at(-1)));
        await limit(() => view.load?.());
      }
      step = "running module.restore";
      if (saved !== undefined) await limit(() => module.restore?.(saved.value));
    } catch (error) {
      throw failure(this.code.source, step, error);
    }
  }

  /** @throws {ModhostError} OPTION_MISSING */
  #requireOptions(): void {
    const { config } = this;
    for (const [option, { required, describe }] of Object.entries(this.code.options)) {
      if (required !== true || config.value(option, this.host === "*" ? undefined : this.host) !== undefined) continue;
      throw new ModhostError("OPTION_MISSING", {
        name: this.name,
        option,
        describe,
        place: config.file ?? "a config file",
        variable: variableOf(option),
      });
    }
  }

  /** Activates all collected effects, or none of them if one fails. Synchronous. */
  commit(): void {
    this.#isCommitting = true;
    try {
      this.#ledger.activate();
    } catch (error) {
      throw failure(this.code.source, "adding what it provides", error);
    } finally {
      this.#isCommitting = false;
    }
    this.phase = "loaded";
    for (const text of callbackHints(this.module, this.#ownFields)) this.#advice.add(text);
    for (const text of this.#advice) this.module.log.warn("%s", text);
    this.reloading = undefined;
    this.group = undefined;
  }

  get occupied(): string | undefined {
    if (this.phase === "unloading" || this.phase === "gone")
      return `the instance of ${this.name} that requests it is being unloaded`;
    if (this.#awaited === 0) return undefined;
    return `the server waits for ${this.name} to finish a step of its life cycle (load, ready, save, restore): request it afterwards`;
  }

  /**
   * Records that this instance has read an option. After the load, it does not record live options
   * of other modules: such a module has received an item of this instance, reads the option through
   * the module object of the instance, and handles changes of the option itself.
   */
  read(option: string, host: string): void {
    const known = this.#reads.get(option);
    if (known?.has(host) === true) return;
    if (this.#isCommitting || this.phase !== "loading") {
      const declared = this.config.declarations().get(option);
      if (declared?.applies === "live" && declared.owner !== this.name) return;
    }
    if (known === undefined) this.#reads.set(option, new Set([host]));
    else known.add(host);
  }

  becomeGlobal(): void {
    this.host = "*";
    this.isGlobal = true;
  }

  /** Returns the facts that a plan needs. */
  facts(): InstanceFacts {
    const { key, name, host, depends, isGlobal } = this;
    const views = this.#views.map((view) => view.host);
    const handlesChanges = [this.module, ...this.#views].some((view) => view.changed !== undefined);
    return {
      key,
      name,
      host,
      depends,
      isGlobal,
      handlesChanges: handlesChanges,
      reads: this.#reads,
      views: this.#hasViews ? views : undefined,
    };
  }

  get #hasViews(): boolean {
    return this.module.add_host !== undefined && this.host === "*";
  }

  /**
   * Notifies it that options have changed; it can read the new values already.
   * @throws {ModhostError} MODULE_FAILED
   */
  async notifyChange(options: readonly string[]): Promise<void> {
    const limit = this.#limit();
    try {
      for (const view of [this.module, ...this.#views]) await limit(() => view.changed?.(options));
    } catch (error) {
      throw failure(this.code.source, "running module.changed", error);
    }
  }

  async ready(): Promise<void> {
    for (const kind of this.provided) {
      // Metrics, operations and data are provided whether or not anything reads them.
      if (givenAnyway.has(kind) || this.#context.items.isReceived(`${kind}-provider`)) continue;
      this.advise(kindHint(kind));
    }
    for (const view of [this.module, ...this.#views]) {
      try {
        await this.#limit()(() => view.ready?.());
      } catch (error) {
        this.fault("running module.ready", error);
        this.note = failure(this.code.source, "running module.ready", error).message;
      }
    }
  }

  /** @throws {ModhostError} MODULE_FAILED */
  async save(): Promise<{ value: unknown }> {
    try {
      return { value: await this.#limit()(() => this.module.save?.()) };
    } catch (error) {
      throw failure(this.code.source, "running module.save", error);
    }
  }

  /**
   * Removes the effects with which it acts, of these kinds or of all. The returned promises resolve
   * when the receivers have released them.
   */
  withdraw(...kinds: string[]): Promise<unknown>[] {
    this.phase = "unloading";
    this.usage.isLeaving = true;
    return this.#ledger.take(...(kinds.length === 0 ? acting : kinds));
  }

  /**
   * Runs `module.unload`, then undoes all remaining effects, last first. Errors are logged and do
   * not stop the unload.
   */
  async close(deadline: Deadline): Promise<void> {
    for (const view of [...this.#views.toReversed(), this.module]) {
      const unload = () => Promise.try(() => view.unload?.());
      const work = this.usage.run(unload).catch((error) => this.#unfinished("running module.unload", error));
      if (await deadline.wait(work)) continue;
      this.unfinished.push("running module.unload (took too long)");
      this.module.log.warn("module.unload took too long; the unload continues without it");
    }
    await this.abandon((work) => deadline.wait(work));
  }

  /** Undoes everything; the module object cannot be used afterwards. */
  async abandon(wait?: (work: unknown) => Promise<boolean>): Promise<void> {
    const deadline = new Deadline(this.#context.loadTimeout);
    await this.#ledger.close(wait ?? ((work) => deadline.wait(work)));
    this.phase = "gone";
    // Connections that the module opened refer to its account until they are closed. This must not
    // keep the instance in memory as well.
    this.usage.failed = undefined;
  }

  add(effect: Effect): EffectHandle {
    this.assertLive();
    return this.#ledger.add(effect);
  }

  recordRelease(kind: string, label: string, release: Release): EffectHandle {
    this.assertLive();
    return this.#ledger.recordRelease(kind, label, release);
  }

  /** @throws {ModhostError} MODULE_UNLOADED */
  assertLive(): void {
    if (this.phase === "gone") throw new ModhostError("MODULE_UNLOADED", { name: this.name });
  }

  /**
   * Logs a hint for the module's author, once. During the load the hint is only stored, and it is
   * dropped if the load fails.
   */
  advise(text: string): void {
    if (this.#advice.has(text)) return;
    this.#advice.add(text);
    if (this.phase !== "loading") this.module.log.warn("%s", text);
  }

  /**
   * Reports an uncaught error of the module's code. Returns true if the error fails a load that is
   * in progress.
   */
  uncaught(error: unknown): boolean {
    if (this.phase !== "loading" || this.#awaited === 0) return false;
    this.#failing.reject(error);
    return true;
  }

  /** Handles an error of the module's own code that no caller receives. */
  fault(step: string, thrown: unknown): void {
    const error = readableThrown(thrown);
    const { log } = this.module;
    this.usage.logFailure(log, () => {
      log.error("%s", failure(this.code.source, step, error).message);
      log.debug("%s", stackOf(error));
    });
    this.usage.fault(step, error);
  }

  #unfinished(step: string, error: unknown): void {
    this.unfinished.push(`${step} (${reasonOf(error)})`);
    this.fault(step, error);
  }

  /**
   * Runs steps of the module's code that the host waits for; all of them together must end within
   * `load_timeout`.
   */
  #limit(): <T>(step: () => T | PromiseLike<T>) => Promise<T> {
    const deadline = new Deadline(this.#context.loadTimeout);
    return async (step) => {
      this.#awaited += 1;
      try {
        const work = this.usage.run(() => Promise.try(step));
        return await deadline.result(Promise.race([work, this.#failing.promise]), "load_timeout");
      } finally {
        this.#awaited -= 1;
      }
    };
  }

  /** Returns the running work that this instance, or the evaluation of its file, has started. */
  #started(): Started[] {
    const { evaluated } = this.code;
    return [...startedBy(this.usage), ...(evaluated === undefined ? [] : startedBy(evaluated))];
  }

  #rights(): Pick<ModuleState, "run" | "is_audited" | "permissions"> {
    const { run = "trusted", settings } = this.code.rights ?? {};
    const permissions = this.#context.permissions?.(this.code) ?? [];
    return {
      run,
      ...(settings?.audit === true && run !== "trusted" ? { is_audited: true } : {}),
      ...(permissions.length === 0 ? {} : { permissions }),
    };
  }

  /** Returns its status, after what has gone wrong with it. */
  #note(): Pick<ModuleState, "note" | "note_level"> {
    const { note, noteLevel } = this;
    const incident = this.incident && incidentNote(this.incident);
    const level = incident === undefined || noteLevel === "error" ? noteLevel : "warn";
    const texts = [incident, note].filter((text) => text !== undefined);
    return {
      note: texts.length === 0 ? undefined : texts.join("; "),
      ...(level === undefined ? {} : { note_level: level }),
    };
  }

  state(): ModuleState {
    return {
      name: this.name,
      host: this.host,
      status: this.phase === "gone" ? "unloading" : this.phase,
      ...this.#rights(),
      ...(this.sandbox === undefined ? {} : { sandbox: this.sandbox }),
      ...(this.hasSpare === undefined ? {} : { has_spare: this.hasSpare() }),
      file: this.code.source.file,
      ...this.#note(),
      depends: [...this.depends].map((key) => key.slice(0, key.lastIndexOf("@"))),
      holds: countStarted(this.#started(), this.#ledger.counts()),
    };
  }
}
