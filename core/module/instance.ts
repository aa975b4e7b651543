import { type Config, variableOf } from "../config/index.ts";
import type { Module, ModuleState, OwnedItem } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { stackOf } from "../util/stack.ts";
import { Usage } from "../util/usage.ts";
import { ModuleApi, type ModuleOwner } from "./api.ts";
import type { ModuleCode } from "./code.ts";
import { failure } from "./code.ts";
import { Deadline } from "./deadline.ts";
import { callbackHints, kindHint } from "./hints.ts";
import { type Effect, type Entry, Ledger, type Release } from "./ledger.ts";
import type { ModuleContext } from "./module_context.ts";

/** Instances that are made together; those not made yet are undefined. */
export type Group = ReadonlyMap<string, Instance | undefined>;

/** How an instance is made: anew, or in the place of one that is reloaded. */
export interface InstanceOptions {
  readonly reloading: boolean;
  readonly group?: Group;
}

/** What a plan of a change has to know of an instance. */
export interface InstanceFacts {
  readonly key: string;
  readonly name: string;
  readonly host: string;
  /** Keys of the instances it depends on. */
  readonly depends: ReadonlySet<string>;
  readonly isGlobal: boolean;
  /** It has `module.changed`. */
  readonly isTold: boolean;
  /** Options that it has read: name, and the hosts for which ("*": the server). */
  readonly reads: ReadonlyMap<string, ReadonlySet<string>>;
  /** The hosts for which it was called, where it has `add_host`. */
  readonly views: readonly string[] | undefined;
}

/** `name@host`: how the host keeps an instance. */
export const keyOf = (name: string, host: string): string => `${name}@${host}`;

/** Effects by which a module acts, rather than holds something that it needs to finish. */
const acting: readonly string[] = ["item", "hook", "timer"];
/** Kinds of items that are of use whether or not somebody takes them now. */
const givenAnyway: ReadonlySet<string> = new Set(["metrics", "admin", "backup", "health"]);

/** One run of a module's code for one host: its module object, and all it has done. */
export class Instance implements ModuleOwner {
  readonly code: ModuleCode;
  readonly name: string;
  host: string;
  /** What is in force for it. */
  config: Config;
  /** It belongs to the whole server, whatever hosts there are. */
  isGlobal: boolean;
  phase: "loading" | "loaded" | "unloading" | "gone" = "loading";
  reloading: boolean | undefined;
  /** What dependents get. */
  exports: unknown;
  /** Keys of the instances it depends on. */
  readonly depends = new Set<string>();
  /** The first module it asked for that is not loaded: this attempt is undone, whatever became of it. */
  missing: string | undefined;
  note: string | undefined;
  /** Of a note from `set_status`. */
  noteLevel: ModuleState["note_level"] | undefined;
  /** Steps of the unload that failed or took too long, as far as it has come. */
  readonly unfinished: string[] = [];
  /** While loading: the instances that are made with it, which it gets from `module.depends`. */
  group: Group | undefined;
  readonly module: ModuleApi;
  /** What its code costs, and how often it fails. */
  readonly usage: Usage;
  /** Kinds that it has called `provides` with. */
  readonly provided = new Set<string>();
  /** What its author was told, or will be once the load has succeeded. */
  readonly #advice: Set<string>;
  readonly #ownFields: ReadonlySet<string>;
  readonly #context: ModuleContext;
  readonly #ledger: Ledger;
  /** Steps of its life cycle that the host waits for. */
  #awaited = 0;
  /** Module objects for single hosts of a global module. */
  readonly #views: ModuleApi[] = [];
  /** Options that it has read: name, and the hosts for which. */
  readonly #reads = new Map<string, Set<string>>();
  /** Its effects come to life: what is read through its module object now is read by those who receive them. */
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
  }

  get key(): string {
    return keyOf(this.name, this.host);
  }

  /** What it has added of a kind, live or not. */
  itemsOf(kind: string): OwnedItem[] {
    return this.#ledger.items(`item ${kind}`);
  }

  /** Is this its module object, or one of those for single hosts? */
  owns(owner: Module): boolean {
    return owner === this.module || this.#views.some((view) => view === owner);
  }

  /**
   * Runs the code, then `module.load`, `add_host` for each of `hosts`, and `restore`; nothing is live yet.
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
      for (const host of module.add_host !== undefined && this.host === "*" ? hosts() : []) {
        step = `adding the host ${host}`;
        const view = new ModuleApi(this, this.#context, host);
        this.#views.push(view);
        await limit(() => module.add_host?.(view));
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
      const place = config.file ?? "a config file";
      throw new ModhostError("OPTION_MISSING", {
        name: this.name,
        option,
        describe,
        place,
        variable: variableOf(option),
      });
    }
  }

  /** Brings to life all that was collected, or, when some of it cannot be, nothing. Synchronous. */
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
    if (this.phase === "unloading" || this.phase === "gone") return `the instance of ${this.name} that asks is leaving`;
    if (this.#awaited === 0) return undefined;
    return `the server waits for ${this.name} to finish a step of its life cycle (load, ready, save, restore): ask afterwards`;
  }

  /**
   * It has read an option. Reads of live options through its module object while it does not load itself are those of
   * the modules that it has given things to, and that hear of a change.
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

  /** What a plan has to know of it. */
  facts(): InstanceFacts {
    const { key, name, host, depends, isGlobal } = this;
    const views = this.#views.map((view) => view.host);
    const isTold = [this.module, ...this.#views].some((view) => view.changed !== undefined);
    return {
      key,
      name,
      host,
      depends,
      isGlobal,
      isTold,
      reads: this.#reads,
      views: this.#hasViews ? views : undefined,
    };
  }

  get #hasViews(): boolean {
    return this.module.add_host !== undefined && this.host === "*";
  }

  /**
   * Tells it that options have changed, which it can read by now.
   * @throws {ModhostError} MODULE_FAILED
   */
  async tell(options: readonly string[]): Promise<void> {
    const limit = this.#limit();
    try {
      for (const view of [this.module, ...this.#views]) await limit(() => view.changed?.(options));
    } catch (error) {
      throw failure(this.code.source, "running module.changed", error);
    }
  }

  async ready(): Promise<void> {
    for (const kind of this.provided) {
      // Figures, operations and data are given, whether or not anybody looks at them.
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
   * Takes away the effects by which it acts, of these kinds or of all; the promises are of those who need time to let go.
   */
  withdraw(...kinds: string[]): Promise<unknown>[] {
    this.phase = "unloading";
    return this.#ledger.take(...(kinds.length === 0 ? acting : kinds));
  }

  /** `module.unload`, then everything that is left, last first. Errors are logged and stop nothing. */
  async close(deadline: Deadline): Promise<void> {
    for (const view of [...this.#views.toReversed(), this.module]) {
      const work = Promise.try(() => view.unload?.()).catch((error) =>
        this.#unfinished("running module.unload", error),
      );
      if (await deadline.wait(work)) continue;
      this.unfinished.push("running module.unload (took too long)");
      this.module.log.warn("module.unload took too long; going on without it");
    }
    await this.abandon((work) => deadline.wait(work));
  }

  /** Undoes everything; the module object is of no further use. */
  async abandon(wait?: (work: unknown) => Promise<boolean>): Promise<void> {
    const deadline = new Deadline(this.#context.loadTimeout);
    await this.#ledger.close(wait ?? ((work) => deadline.wait(work)));
    this.phase = "gone";
  }

  add(effect: Effect): Entry {
    this.assertLive();
    return this.#ledger.add(effect);
  }

  hold(kind: string, label: string, release: Release): Entry {
    this.assertLive();
    return this.#ledger.hold(kind, label, release);
  }

  /** @throws {ModhostError} MODULE_UNLOADED */
  assertLive(): void {
    if (this.phase === "gone") throw new ModhostError("MODULE_UNLOADED", { name: this.name });
  }

  /** Tells the module's author something in the log, once; of an attempt to load that fails, nothing. */
  advise(text: string): void {
    if (this.#advice.has(text)) return;
    this.#advice.add(text);
    if (this.phase !== "loading") this.module.log.warn("%s", text);
  }

  /** An error of the module's own code that has nobody else to go to. */
  fault(step: string, error: unknown): void {
    this.module.log.error("%s", failure(this.code.source, step, error).message);
    this.module.log.debug("%s", stackOf(error));
    this.usage.fault(step, error);
  }

  #unfinished(step: string, error: unknown): void {
    this.unfinished.push(`${step} (${reasonOf(error)})`);
    this.fault(step, error);
  }

  /** Runs steps of the module's code that others wait for, all of them before `load_timeout` is over. */
  #limit(): <T>(step: () => T | PromiseLike<T>) => Promise<T> {
    const deadline = new Deadline(this.#context.loadTimeout);
    return async (step) => {
      this.#awaited += 1;
      try {
        return await deadline.result(Promise.try(step), "load_timeout");
      } finally {
        this.#awaited -= 1;
      }
    };
  }

  state(): ModuleState {
    return {
      name: this.name,
      host: this.host,
      status: this.phase === "gone" ? "unloading" : this.phase,
      file: this.code.source.file,
      note: this.note,
      ...(this.noteLevel === undefined ? {} : { note_level: this.noteLevel }),
      depends: [...this.depends].map((key) => key.slice(0, key.lastIndexOf("@"))),
      holds: this.#ledger.counts(),
    };
  }
}
