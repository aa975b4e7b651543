/** Applies the module changes of a new configuration as one transition. */
import type { Config } from "../config/index.ts";
import type { Catalog, Wanted } from "./catalog.ts";
import type { ModuleCode } from "./code.ts";
import { inOrder, withDependants } from "./graph.ts";
import type { Instance, InstanceOptions } from "./instance.ts";
import type { Instances } from "./instances.ts";

/** The steps of a transition; instances are given by their keys. */
export interface TransitionSteps {
  readonly load: readonly Wanted[];
  /** Modules that have failed before, and may fail again. */
  readonly retry: readonly Wanted[];
  /** Instances that are replaced by new ones, with all that depend on them. */
  readonly exchange: ReadonlySet<string>;
  readonly unload: ReadonlySet<string>;
  /** Names of changed options, by the instance that is notified of them. */
  readonly notify: ReadonlyMap<string, readonly string[]>;
  /**
   * Modules whose code is evaluated again, because their file is another one or they run in another
   * thread.
   */
  readonly moved: ReadonlySet<string>;
  /** Modules that had failed and are no longer enabled. */
  readonly forget: readonly string[];
}

/** The operations on modules that a transition needs. */
export interface TransitionDeps {
  readonly instances: Instances;
  readonly catalog: Catalog;
  load(name: string, host: string): Promise<unknown>;
  /**
   * Loads a module that had failed or was quarantined; if it fails again, its state does not
   * change.
   */
  retry(name: string, host: string): Promise<unknown>;
  /** Returns a function that quarantines again what has come back since. */
  remember(): () => Promise<void>;
  /** Waits until their ports are open, and notifies them. */
  finishLoads(): Promise<void>;
  build(
    code: ModuleCode,
    instance: Instance,
    options: InstanceOptions & { saved: { value: unknown } },
  ): Promise<Instance>;
  commit(instances: readonly Instance[]): void;
  /** Withdraws and closes instances that have been replaced. */
  replace(leaving: readonly Instance[]): Promise<void>;
  unload(leaving: readonly Instance[]): Promise<void>;
  forgetFailure(name: string): void;
  isRunning(): boolean;
  announce(event: string, data: unknown): void;
}

/**
 * A transition. `prepare` does everything that can fail, next to the running instances. After it
 * either `undo` restores the previous state, or `commit` and `finish` put the new one in force.
 */
export class Transition {
  readonly #steps: TransitionSteps;
  readonly #deps: TransitionDeps;
  readonly #previous: Config;
  readonly #next: Config;
  readonly #before: ReadonlySet<string>;
  readonly #restoreQuarantine: () => Promise<void>;
  #old: Instance[] = [];
  #built = new Map<string, Instance | undefined>();
  #notified: Instance[] = [];

  constructor(steps: TransitionSteps, configs: { previous: Config; next: Config }, deps: TransitionDeps) {
    this.#steps = steps;
    this.#deps = deps;
    this.#previous = configs.previous;
    this.#next = configs.next;
    this.#restoreQuarantine = deps.remember();
    this.#before = new Set(deps.instances.live().map(({ key }) => key));
  }

  /**
   * Prepares the transition. @throws {ModhostError} MODULE_FAILED, PORT_*, ...: the caller must
   * then call `undo`
   */
  async prepare(): Promise<void> {
    this.#deps.instances.markLeaving(this.#steps.unload);
    await this.#load();
    await this.#build();
    // New instances may depend on modules that were not loaded before.
    await this.#deps.finishLoads();
    await this.#notifyChanges();
  }

  /**
   * Activates all new instances in one synchronous step. If it throws, the caller must call `undo`.
   */
  commit(): void {
    this.#deps.commit(inOrder(this.#fresh()));
    for (const instance of this.#fresh()) this.#deps.instances.add(instance);
    const leaving = new Set(this.#old);
    for (const instance of this.#deps.instances.live()) if (!leaving.has(instance)) instance.config = this.#next;
  }

  /** Unloads instances that were replaced, or that are no longer enabled. */
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
    instances.markLeaving(new Set());
  }

  async undo(): Promise<void> {
    const { instances, unload, forgetFailure } = this.#deps;
    instances.markLeaving(new Set());
    for (const instance of instances.live()) instance.config = this.#previous;
    for (const instance of this.#notified.reverse()) {
      await instance.notifyChange(this.#steps.notify.get(instance.key) ?? []).catch((error: unknown) => {
        instance.fault("running module.changed", error);
      });
    }
    for (const instance of this.#fresh().reverse()) await instance.abandon();
    await this.#restoreQuarantine();
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

  async #notifyChanges(): Promise<void> {
    const stay = this.#deps.instances.live().filter(({ key }) => !this.#built.has(key));
    // A module that is notified may also read options on behalf of modules that gave it items, so
    // all instances switch first.
    for (const instance of stay) instance.config = this.#next;
    for (const instance of stay) {
      const options = this.#steps.notify.get(instance.key);
      if (options === undefined) continue;
      this.#notified.push(instance);
      await instance.notifyChange(options);
    }
  }

  #fresh(): Instance[] {
    return [...this.#built.values()].filter((instance) => instance !== undefined);
  }
}
