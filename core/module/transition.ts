/** Many changes of modules made as one: what a new configuration asks for. */
import type { Config } from "../config/index.ts";
import type { Catalog, Wanted } from "./catalog.ts";
import type { ModuleCode } from "./code.ts";
import { inOrder, withDependants } from "./graph.ts";
import type { Instance, InstanceOptions } from "./instance.ts";
import type { Instances } from "./instances.ts";

/** What is to become of the modules; instances are named by their keys. */
export interface TransitionSteps {
  readonly load: readonly Wanted[];
  /** Had failed before, and may fail again. */
  readonly retry: readonly Wanted[];
  /** New instances take their places, and those of all that depend on them. */
  readonly exchange: ReadonlySet<string>;
  readonly unload: ReadonlySet<string>;
  /** Names of options that have changed, by who hears of them. */
  readonly tell: ReadonlyMap<string, readonly string[]>;
  /** Modules whose code is evaluated anew: its file is another one, or it runs in another thread. */
  readonly moved: ReadonlySet<string>;
  /** Modules that had failed, and are wanted no more. */
  readonly forget: readonly string[];
}

/** What a transition needs of those who hold the modules. */
export interface TransitionDeps {
  readonly instances: Instances;
  readonly catalog: Catalog;
  load(name: string, host: string): Promise<unknown>;
  /** Loads what had failed, or was in quarantine; it stays so when it fails. */
  retry(name: string, host: string): Promise<unknown>;
  /** What this gives takes out again what has come back from quarantine since. */
  remember(): () => Promise<void>;
  /** Their ports are open, and they are told so. */
  finishLoads(): Promise<void>;
  build(code: ModuleCode, place: Instance, options: InstanceOptions & { saved: { value: unknown } }): Promise<Instance>;
  commit(instances: readonly Instance[]): void;
  /** Takes instances out whose places others have. */
  replace(leaving: readonly Instance[]): Promise<void>;
  unload(leaving: readonly Instance[]): Promise<void>;
  forgetFailure(name: string): void;
  isRunning(): boolean;
  announce(event: string, data: unknown): void;
}

/**
 * `prepare` does all that can fail, beside what runs; then either `undo` makes everything what it was, or `commit` and
 * `finish` put it in force.
 */
export class Transition {
  readonly #steps: TransitionSteps;
  readonly #deps: TransitionDeps;
  readonly #former: Config;
  readonly #next: Config;
  readonly #before: ReadonlySet<string>;
  readonly #takeOutAgain: () => Promise<void>;
  #old: Instance[] = [];
  #built = new Map<string, Instance | undefined>();
  #told: Instance[] = [];

  constructor(steps: TransitionSteps, configs: { former: Config; next: Config }, deps: TransitionDeps) {
    this.#steps = steps;
    this.#deps = deps;
    this.#former = configs.former;
    this.#next = configs.next;
    this.#takeOutAgain = deps.remember();
    this.#before = new Set(deps.instances.live().map(({ key }) => key));
  }

  /** @throws {ModhostError} MODULE_FAILED, PORT_*, ...: `undo` is due then */
  async prepare(): Promise<void> {
    this.#deps.instances.leave(this.#steps.unload);
    await this.#load();
    await this.#build();
    // What runs anew may depend on what was not loaded before.
    await this.#deps.finishLoads();
    await this.#tell();
  }

  /** Brings all to life in one synchronous step, or throws: `undo` is due then. */
  commit(): void {
    this.#deps.commit(inOrder(this.#fresh()));
    for (const instance of this.#fresh()) this.#deps.instances.add(instance);
    const leaving = new Set(this.#old);
    for (const instance of this.#deps.instances.live()) if (!leaving.has(instance)) instance.config = this.#next;
  }

  /** Lets go what has been replaced, or is wanted no more. */
  async finish(): Promise<void> {
    const { instances, replace, unload, announce, isRunning, forgetFailure } = this.#deps;
    for (const name of this.#steps.forget) forgetFailure(name);
    if (this.#old.length > 0) await replace(this.#old.reverse());
    for (const instance of this.#fresh()) {
      announce("module-reloaded", { module: instance.name, host: instance.host });
      if (isRunning()) await instance.ready();
    }
    const leaving = instances.live().filter(({ key }) => this.#steps.unload.has(key));
    if (leaving.length > 0) await unload(inOrder(leaving).reverse());
    instances.leave(new Set());
  }

  async undo(): Promise<void> {
    const { instances, unload, forgetFailure } = this.#deps;
    instances.leave(new Set());
    for (const instance of instances.live()) instance.config = this.#former;
    for (const instance of this.#told.reverse()) {
      await instance.tell(this.#steps.tell.get(instance.key) ?? []).catch((error: unknown) => {
        instance.fault("running module.changed", error);
      });
    }
    for (const instance of this.#fresh().reverse()) await instance.abandon();
    await this.#takeOutAgain();
    const loaded = instances.live().filter(({ key }) => !this.#before.has(key));
    if (loaded.length > 0) await unload(inOrder(loaded).reverse());
    for (const { name } of this.#steps.load) forgetFailure(name);
  }

  async #load(): Promise<void> {
    const { load, retry, finishLoads } = this.#deps;
    try {
      for (const { name, host } of this.#steps.load) await load(name, host);
      for (const { name, host } of this.#steps.retry) await retry(name, host);
    } finally {
      await finishLoads();
    }
  }

  async #build(): Promise<void> {
    const { instances, catalog, build } = this.#deps;
    const { exchange, unload, moved } = this.#steps;
    const codes = new Map<string, ModuleCode>();
    for (const name of moved) {
      const code = await catalog.fresh(name);
      catalog.adopt(code);
      catalog.verify(code);
      codes.set(name, code);
    }
    const live = instances.live().filter(({ key }) => !unload.has(key));
    const roots = live.filter(({ key }) => exchange.has(key));
    this.#old = withDependants(live, roots);
    this.#built = new Map(this.#old.map(({ key }) => [key, undefined]));
    for (const instance of this.#old) {
      const saved = await instance.save();
      const code = codes.get(instance.name) ?? instance.code;
      this.#built.set(instance.key, await build(code, instance, { reloading: true, group: this.#built, saved }));
    }
  }

  async #tell(): Promise<void> {
    const stay = this.#deps.instances.live().filter(({ key }) => !this.#built.has(key));
    // Whoever is told reads options for those that have given it something, too.
    for (const instance of stay) instance.config = this.#next;
    for (const instance of stay) {
      const options = this.#steps.tell.get(instance.key);
      if (options === undefined) continue;
      this.#told.push(instance);
      await instance.tell(options);
    }
  }

  #fresh(): Instance[] {
    return [...this.#built.values()].filter((instance) => instance !== undefined);
  }
}
