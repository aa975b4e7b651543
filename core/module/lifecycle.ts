import type { Config } from "../config/index.ts";
import type { ModuleState, StickyBy } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { Builder } from "./builder.ts";
import type { ModuleCode } from "./code.ts";
import { commitAll } from "./commit.ts";
import type { Deadline } from "./deadline.ts";
import { Failures } from "./failures.ts";
import { inOrder, namesWithDependants, withDependants } from "./graph.ts";
import { type Instance, type InstanceFacts, keyOf } from "./instance.ts";
import { cycle, Instances } from "./instances.ts";
import { moduleName } from "./locate.ts";
import type { Dependency, Dependent } from "./module_context.ts";
import type { ModulesDeps } from "./modules_deps.ts";
import { isPartOf, labelOf, newOperation, type Operation, type OperationProgress, unheard } from "./operation.ts";
import { QuarantineList } from "./quarantine_list.ts";
import { type SavedState, saveAll, withState } from "./saved.ts";
import { Transition, type TransitionSteps } from "./transition.ts";
import { Unloader } from "./unloader.ts";

/**
 * All modules of a host: loads them with their dependencies first, reloads them beside the running ones, unloads them
 * with their dependants. One operation at a time; its steps see no other.
 */
export class Modules {
  readonly #deps: ModulesDeps;
  readonly #instances = new Instances();
  readonly #failures: Failures;
  readonly #builder: Builder;
  readonly #unloader: Unloader;
  /** What is out, and why. */
  readonly quarantined: QuarantineList;
  /** Loaded into the running host: their ports are not awaited yet, nor are they told that these are open. */
  #unfinishedLoads: Instance[] = [];
  #isStopping = false;
  /** Modules that somebody asked for while the host runs. */
  readonly #asked = new Set<string>();

  constructor(deps: ModulesDeps) {
    this.#deps = deps;
    this.#failures = new Failures(deps.context.log);
    const { context, catalog } = deps;
    this.#unloader = new Unloader({ ...deps, instances: this.#instances });
    this.#builder = new Builder({
      context,
      catalog,
      instances: this.#instances,
      ensureDependency: (name, dependency, host, operation) =>
        this.#ensureDependency(name, dependency, host, operation),
    });
    this.quarantined = new QuarantineList({
      items: deps.context.items,
      instances: this.#instances,
      unload: (leaving, withdrawn) => this.#unloader.unloadAll(leaving, undefined, { ...unheard, inForce: withdrawn }),
      load: (name, host, operation) => this.#ensureLoaded(name, host, operation),
      finishLoads: () => this.#finishLoads(),
      forgetFailure: (name, host) => void this.#failures.forget(name, host),
    });
  }

  // ---------------------------------------------------------------------------------------------------- questions

  /** Notes are without the values of secret options, which an error of a module may quote. */
  states(): ModuleState[] {
    const { config } = this.#deps.context;
    return [...this.#instances.states(), ...this.#out()].map(({ note, ...state }) => {
      return { ...state, note: note === undefined ? undefined : config.mask(note) };
    });
  }

  find(name: string, host: string): Instance | undefined {
    return this.#instances.find(name, host);
  }

  /** @throws {ModhostError} MODULE_CYCLE */
  dependencyOf(asking: Dependent, name: string): Dependency | undefined {
    return this.#instances.dependencyOf(asking, name);
  }

  /** @throws {ModhostError} MODULE_UNKNOWN */
  residue(name: string): string[] {
    return this.#instances.residue(name, this.#deps.context);
  }

  errorOwner(error: unknown): Instance | undefined {
    return this.#instances.errorOwner(error);
  }

  runningOwner(): Instance | undefined {
    return this.#instances.runningOwner();
  }

  /** A wrong value that a module found while it was loading. */
  wrongOption(): ModhostError | undefined {
    return this.#failures.wrongOption();
  }

  /** What a plan of a change has to know of those that are loaded, and of those that are not. */
  facts(): { live: InstanceFacts[]; failed: ModuleState[]; asked: ReadonlySet<string> } {
    const live = this.#instances.live().map((instance) => instance.facts());
    return { live, failed: this.#out(), asked: this.#asked };
  }

  /** Names of those that say that they are shared, and of all that depend on them. */
  shared(): Set<string> {
    return namesWithDependants(this.#instances.live(), this.#deps.catalog.shared());
  }

  /** Names of those whose clients are told apart in this way, and of all that depend on them. */
  sticky(by: StickyBy): Set<string> {
    return namesWithDependants(this.#instances.live(), this.#deps.catalog.sticky(by));
  }

  #out(): ModuleState[] {
    return [...this.quarantined.states(), ...this.#failures.states()];
  }

  /** The code of a module that runs; undefined where none does. */
  codeOf(name: string): ModuleCode | undefined {
    return this.#instances.of(name)[0]?.code;
  }

  // --------------------------------------------------------------------------------------------------- operations

  /** Evaluates all that is enabled, and what that names as dependencies, so that every option is declared. */
  prepare(): Promise<void> {
    return this.#deps.catalog.evaluate((name, error) => this.#fail(name, "*", error));
  }

  /** Loads all that is enabled; what fails is noted and stops nothing else. */
  async loadEnabled(shouldStop: () => boolean): Promise<void> {
    const operation = newOperation({ failed: this.#failures.errors() });
    for (const { name, host } of this.#deps.catalog.wanted()) {
      if (shouldStop()) return;
      await this.#ensureLoaded(name, host, operation).catch(() => undefined);
    }
  }

  /** Names of those that lack what comes by itself. */
  late(): readonly string[] {
    return this.#failures.late();
  }

  /** Loads what is enabled of these, in its order; what fails is noted, and until then has failed as before. */
  async loadAgain(names: readonly string[]): Promise<void> {
    const operation = newOperation({ failed: this.#failures.errors(names) });
    try {
      for (const { name, host } of this.#deps.catalog.wanted()) {
        if (names.includes(name)) await this.#ensureLoaded(name, host, operation).catch(() => undefined);
      }
    } finally {
      await this.#finishLoads();
    }
  }

  /**
   * Loads a module by name or path, on all hosts unless one is named.
   * @throws {ModhostError} MODULE_ALREADY_LOADED, MODULE_FAILED, ...
   */
  async load(entry: string, host?: string): Promise<void> {
    const { catalog } = this.#deps;
    const name = moduleName(entry);
    const hosts = host === undefined ? catalog.hosts() : [host];
    const missing = hosts.filter((at) => this.find(name, at) === undefined);
    if (missing.length === 0) throw new ModhostError("MODULE_ALREADY_LOADED", { name });
    catalog.learn(entry);
    this.#asked.add(name);
    await this.quarantined.readmitAll(name, host);
    const operation = newOperation();
    try {
      for (const at of missing) await this.#ensureLoaded(name, at, operation);
    } finally {
      await this.#finishLoads();
    }
  }

  /**
   * Unloads a module and, before it, those that depend on it.
   * @throws {ModhostError} MODULE_NOT_LOADED
   */
  async unload(name: string, host?: string, progress = unheard): Promise<void> {
    const failed = [this.#failures.forget(name, host), this.quarantined.drop(name, host)].includes(true);
    const found = this.#instances.of(name, host);
    this.#asked.delete(name);
    if (found.length === 0 && !failed) throw new ModhostError("MODULE_NOT_LOADED", { name });
    await this.#unloader.unloadAll(withDependants(this.#instances.live(), found).reverse(), undefined, progress);
  }

  /**
   * Puts a fresh instance in the place of the running one, and of those that depend on it. All new ones are built beside
   * the old, which serve on; then they are exchanged in one step. When anything fails before that, nothing has changed;
   * afterwards only a port that the new code asks for can fail.
   * @throws {ModhostError} MODULE_NOT_LOADED, MODULE_FAILED, ...
   */
  async reload(name: string, host?: string, progress = unheard): Promise<void> {
    const found = this.#instances.of(name, host);
    const isBack = await this.quarantined.readmitAll(name, host);
    if (found.length === 0) {
      if (isBack) return;
      if (!this.#failures.forget(name, host)) throw new ModhostError("MODULE_NOT_LOADED", { name });
      return this.load(name, host);
    }
    try {
      await this.#exchange(name, found, progress);
    } finally {
      await this.#finishLoads();
    }
  }

  /** Many changes as one, for another configuration: nothing has happened yet. */
  transition(steps: TransitionSteps, configs: { former: Config; next: Config }): Transition {
    const { catalog, isRunning, announce } = this.#deps;
    const operation = newOperation({ lifts: this.quarantined.keys() });
    return new Transition(steps, configs, {
      instances: this.#instances,
      catalog,
      load: (name, host) => this.#ensureLoaded(name, host, operation),
      retry: (name, host) =>
        this.#ensureLoaded(name, host, operation).catch(() => {
          if (this.quarantined.has(name, host)) this.#failures.forget(name, host);
        }),
      remember: () => this.quarantined.remember(),
      finishLoads: () => this.#finishLoads(),
      build: (code, place, options) => this.#builder.build(code, place, options),
      commit: (instances) => this.#commit(instances),
      replace: (leaving) => {
        const waits = leaving.flatMap((instance) => instance.withdraw());
        return this.#unloader.close(leaving, waits);
      },
      unload: (leaving) => this.#unloader.unloadAll(leaving),
      forgetFailure: (name) => {
        this.#failures.forget(name);
        this.quarantined.drop(name);
      },
      isRunning,
      announce,
    });
  }

  /** Calls `module.ready` of all, in the order of loading. */
  async ready(): Promise<void> {
    for (const instance of this.#instances.live()) await instance.ready();
  }

  /** Lets requests in flight end while all modules are still there to serve them; no new ones reach any. */
  async drain(deadline: Deadline): Promise<void> {
    this.#isStopping = true;
    this.quarantined.clear();
    const waits = this.#lastFirst().flatMap((instance) => instance.withdraw("item"));
    await deadline.within(this.#deps.grace()).wait(Promise.all(waits));
  }

  /** What modules save for those that go on in their place. */
  save(): Promise<SavedState[]> {
    return saveAll(inOrder(this.#instances.live()));
  }

  /** Unloads everything, last first. */
  async stop(deadline: Deadline): Promise<void> {
    for (const instance of this.#lastFirst()) await this.#unloader.unloadAll([instance], deadline);
  }

  #lastFirst(): Instance[] {
    return inOrder(this.#instances.live()).reverse();
  }

  // -------------------------------------------------------------------------------------------------------- steps

  /** Completes what was loaded into the running host; what cannot have its ports is unloaded again. */
  async #finishLoads(): Promise<void> {
    const loaded = this.#unfinishedLoads;
    this.#unfinishedLoads = [];
    try {
      await this.#deps.settle();
    } catch (error) {
      await this.#unloader.unloadAll(loaded.reverse());
      for (const { name, host } of loaded) this.#fail(name, host, error);
      throw error;
    }
    for (const instance of loaded) await instance.ready();
  }

  async #exchange(name: string, found: readonly Instance[], progress: OperationProgress): Promise<void> {
    const { catalog, isRunning, announce } = this.#deps;
    const code = await catalog.fresh(name);
    const former = catalog.adopted(name);
    const old = withDependants(this.#instances.live(), found);
    const built = new Map<string, Instance | undefined>(old.map(({ key }) => [key, undefined]));
    const fresh = () => [...built.values()].filter((instance) => instance !== undefined);
    try {
      catalog.adopt(code);
      catalog.verify(code);
      for (const instance of old) {
        const saved = await instance.save();
        const options = { reloading: true, group: built, saved };
        built.set(
          instance.key,
          await this.#builder.build(found.includes(instance) ? code : instance.code, instance, options),
        );
      }
      progress.step(`loaded ${fresh().map(labelOf).join(", ")} beside the running ones`);
      this.#commit(inOrder(fresh()));
    } catch (error) {
      for (const instance of fresh().reverse()) await instance.abandon();
      if (former !== undefined) catalog.adopt(former);
      throw error;
    }
    for (const instance of fresh()) this.#instances.add(instance);
    const leaving = old.reverse();
    const waits = leaving.flatMap((instance) => instance.withdraw());
    progress.step("exchanged");
    const ports = await this.#finishLoads().catch((error: unknown) => ({ error }));
    if (ports === undefined) progress.inForce();
    await this.#unloader.close(leaving, waits);
    for (const instance of fresh()) {
      announce("module-reloaded", { module: instance.name, host: instance.host });
      if (isRunning()) await instance.ready();
    }
    if (ports !== undefined) throw ports.error;
    progress.step("the former instances are gone");
  }

  async #ensureLoaded(name: string, host: string, operation: Operation): Promise<Instance> {
    const live = this.find(name, host);
    if (live !== undefined) return live;
    if (this.#deps.catalog.isDisabled(name, host)) throw new ModhostError("MODULE_DISABLED", { name });
    this.#instances.expect(name);
    this.quarantined.assertIn(name, host, operation);
    const at = operation.chain.indexOf(name);
    if (at >= 0) throw cycle([...operation.chain.slice(at), name]);
    const earlier = operation.failed.get(keyOf(name, host)) ?? operation.failed.get(keyOf(name, "*"));
    if (earlier !== undefined) throw earlier;
    const inner = { ...operation, chain: [...operation.chain, name] };
    try {
      return await this.#loadNew(name, host, inner);
    } catch (error) {
      const place = this.#deps.catalog.adopted(name) === undefined ? "*" : host;
      operation.failed.set(keyOf(name, place), error);
      this.#fail(name, place, error);
      if (!this.#instances.has(name)) this.#deps.catalog.forget(name);
      throw error;
    }
  }

  async #loadNew(name: string, host: string, operation: Operation): Promise<Instance> {
    const { catalog, announce } = this.#deps;
    const isKnown = catalog.adopted(name) !== undefined;
    const code = await catalog.code(name);
    if (!isKnown) catalog.verify(code);
    const place = code.global ? "*" : host;
    for (const dependency of code.depends) await this.#ensureDependency(name, dependency, place, operation);
    const instance = await withState(this.#deps.takeSaved(keyOf(name, place)), (options) =>
      this.#builder.build(code, { name, host: place }, { reloading: false, ...options }, operation),
    );
    try {
      this.#commit([instance]);
    } catch (error) {
      await instance.abandon();
      throw error;
    }
    this.quarantined.lift(instance.key);
    this.#instances.add(instance);
    if (this.#deps.isRunning()) this.#unfinishedLoads.push(instance);
    this.#failures.forget(name, place === "*" ? undefined : instance.host);
    announce("module-loaded", { module: name, host: instance.host });
    return instance;
  }

  async #ensureDependency(name: string, dependency: string, host: string, operation: Operation): Promise<void> {
    try {
      await this.#ensureLoaded(dependency, host, operation);
    } catch (error) {
      if (ModhostError.is(error) && error.code === "MODULE_CYCLE" && isPartOf(error, name)) throw error;
      throw new ModhostError("MODULE_DEPENDENCY", { name, dependency, reason: reasonOf(error) }, { cause: error });
    }
  }

  /** Brings instances to life in one synchronous step: all, or none. */
  #commit(instances: readonly Instance[]): void {
    if (this.#isStopping) throw new Error("The host is stopping");
    commitAll(instances);
  }

  #fail(name: string, host: string, error: unknown): void {
    let file: string | undefined;
    try {
      file = this.#deps.catalog.locate(name).file;
    } catch {} // The error says so already.
    this.#failures.add({ name, host, error, file });
  }
}
