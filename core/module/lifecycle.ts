import type { Config } from "../config/index.ts";
import type { ModuleState, StickyBy } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";
import { moduleName } from "../util/module_name.ts";
import type { Usage } from "../util/usage.ts";
import { Builder } from "./builder.ts";
import type { ModuleCode } from "./code.ts";
import { commitAll } from "./commit.ts";
import type { Deadline } from "./deadline.ts";
import { Failures } from "./failures.ts";
import { inOrder, namesWithDependants, withDependants } from "./graph.ts";
import { type Instance, type InstanceFacts, keyOf } from "./instance.ts";
import { cycle, Instances } from "./instances.ts";
import type { Dependency, Dependent } from "./module_context.ts";
import type { ModulesDeps } from "./modules_deps.ts";
import { isPartOf, labelOf, newOperation, noProgress, type Operation, type OperationProgress } from "./operation.ts";
import { QuarantineList } from "./quarantine_list.ts";
import { type SavedState, saveAll, withState } from "./saved.ts";
import { Transition, type TransitionSteps } from "./transition.ts";
import { Unloader } from "./unloader.ts";

/**
 * All modules of a host. It loads modules after their dependencies, reloads them next to the
 * running instances, and unloads them after their dependants. Operations run one at a time.
 */
export class Modules {
  readonly #deps: ModulesDeps;
  readonly #instances = new Instances();
  readonly #failures: Failures;
  readonly #builder: Builder;
  readonly #unloader: Unloader;
  /** The modules in quarantine, with the reasons. */
  readonly quarantined: QuarantineList;
  /**
   * Instances that were loaded while the host runs, whose ports are not open yet and whose
   * `module.ready` was not called.
   */
  #unfinishedLoads: Instance[] = [];
  #isStopping = false;
  /** Modules that somebody requested while the host runs. */
  readonly #requested = new Set<string>();

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
      unload: (leaving, withdrawn) =>
        this.#unloader.unloadAll(leaving, undefined, { ...noProgress, inForce: withdrawn }),
      load: (name, host, operation) => this.#ensureLoaded(name, host, operation),
      finishLoads: () => this.#finishLoads(),
      forgetFailure: (name, host) => void this.#failures.forget(name, host),
    });
  }

  // ----------------------------------------------------------------------------------------
  // queries

  /**
   * Returns the state of all modules. Notes contain no values of secret options, which an error of
   * a module may quote.
   */
  states(): ModuleState[] {
    const { config } = this.#deps.context;
    return [...this.#instances.states(), ...this.#notLoaded()].map(({ note, ...state }) => {
      return { ...state, note: note === undefined ? undefined : config.mask(note) };
    });
  }

  find(name: string, host: string): Instance | undefined {
    return this.#instances.find(name, host);
  }

  /** @throws {ModhostError} MODULE_CYCLE */
  dependencyOf(dependent: Dependent, name: string): Dependency | undefined {
    return this.#instances.dependencyOf(dependent, name);
  }

  /** @throws {ModhostError} MODULE_UNKNOWN */
  residue(name: string): string[] {
    return this.#instances.residue(name, this.#deps.context);
  }

  errorOwner(error: unknown): Instance | undefined {
    return this.#instances.errorOwner(error);
  }

  goneOwner(error: unknown): Usage | undefined {
    return this.#instances.goneOwner(error);
  }

  ownerOf(account: Usage): Instance | undefined {
    return this.#instances.ownerOf(account);
  }

  runningOwner(): Instance | undefined {
    return this.#instances.runningOwner();
  }

  /** Returns a wrong option value that a module found while it was loading. */
  wrongOption(): ModhostError | undefined {
    return this.#failures.wrongOption();
  }

  /** Returns the facts about loaded and failed modules that a plan of a change needs. */
  facts(): { live: InstanceFacts[]; failed: ModuleState[]; requested: ReadonlySet<string> } {
    const live = this.#instances.live().map((instance) => instance.facts());
    return { live, failed: this.#notLoaded(), requested: this.#requested };
  }

  /** Returns the names of shared modules, and of all that depend on them. */
  shared(): Set<string> {
    return namesWithDependants(this.#instances.live(), this.#deps.catalog.shared());
  }

  /**
   * Returns the names of modules that identify their clients in this way, and of all that depend on
   * them.
   */
  sticky(by: StickyBy): Set<string> {
    return namesWithDependants(this.#instances.live(), this.#deps.catalog.sticky(by));
  }

  #notLoaded(): ModuleState[] {
    const states = [...this.quarantined.states(), ...this.#failures.states()];
    const { catalog, context } = this.#deps;
    return states.map((state) => {
      const rights = catalog.rightsOf(state.name);
      const permissions = (rights && context.permissions?.(rights)) ?? [];
      const run = catalog.runOf(state.name);
      return { ...state, run, ...(permissions.length === 0 ? {} : { permissions }) };
    });
  }

  /** Returns the code of a running module; undefined if it does not run. */
  codeOf(name: string): ModuleCode | undefined {
    return this.#instances.of(name)[0]?.code;
  }

  // ---------------------------------------------------------------------------------------------------
  // operations

  /**
   * Evaluates all enabled modules and their declared dependencies, so that every option is
   * declared.
   */
  prepare(): Promise<void> {
    return this.#deps.catalog.evaluate((name, error) => this.#fail(name, "*", error));
  }

  /** Loads all enabled modules; a failure is recorded and does not stop the others. */
  async loadEnabled(shouldStop: () => boolean): Promise<void> {
    const operation = newOperation({ failed: this.#failures.errors() });
    for (const { name, host } of this.#deps.catalog.wanted()) {
      if (shouldStop()) return;
      await this.#ensureLoaded(name, host, operation).catch(() => undefined);
    }
  }

  /**
   * Returns the names of modules that failed because something is missing that will appear by
   * itself.
   */
  late(): readonly string[] {
    return this.#failures.late();
  }

  /**
   * Loads the enabled ones of these modules, in order. A failure is recorded; until then the
   * earlier failure remains.
   */
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
    this.#requested.add(name);
    await this.quarantined.readmitAll(name, host);
    const operation = newOperation();
    try {
      for (const at of missing) await this.#ensureLoaded(name, at, operation);
    } finally {
      await this.#finishLoads();
    }
  }

  /**
   * Returns the names of the modules that no host has after a module is unloaded: its own name, and
   * those of its dependants.
   */
  leavingWith(name: string, host?: string): string[] {
    const live = this.#instances.live();
    const leaving = withDependants(live, this.#instances.of(name, host));
    const staying = new Set(live.filter((instance) => !leaving.includes(instance)).map((instance) => instance.name));
    return [...new Set(leaving.map((instance) => instance.name))].filter((each) => !staying.has(each));
  }

  /**
   * Unloads a module and, before it, those that depend on it.
   * @throws {ModhostError} MODULE_NOT_LOADED
   */
  async unload(name: string, host?: string, progress = noProgress): Promise<void> {
    const failed = [this.#failures.forget(name, host), this.quarantined.drop(name, host)].includes(true);
    const found = this.#instances.of(name, host);
    this.#requested.delete(name);
    if (found.length === 0 && !failed) throw new ModhostError("MODULE_NOT_LOADED", { name });
    await this.#unloader.unloadAll(withDependants(this.#instances.live(), found).reverse(), undefined, progress);
  }

  /**
   * Replaces the running instance and those that depend on it with fresh ones. All new instances
   * are built next to the old ones, which keep serving; then they are swapped in one step. If
   * anything fails before that, nothing has changed. Afterwards only two things can fail: a port
   * that the new code needs, and modules quarantined on other hosts.
   * @throws {ModhostError} MODULE_NOT_LOADED, MODULE_FAILED, ...
   */
  async reload(name: string, host?: string, progress = noProgress): Promise<void> {
    const found = this.#instances.of(name, host);
    if (found.length === 0) {
      if (await this.quarantined.readmitAll(name, host)) return;
      if (!this.#failures.forget(name, host)) throw new ModhostError("MODULE_NOT_LOADED", { name });
      return this.load(name, host);
    }
    try {
      await this.#exchange(name, found, progress);
    } finally {
      await this.#finishLoads();
    }
    // This must not happen earlier: until the swap, a module that serves another host has its
    // previous code.
    await this.quarantined.readmitAll(name, host);
  }

  /** Replaces an instance by a fresh one, as `reload` does; nothing happens if it has gone. */
  async replace(instance: Instance, progress = noProgress): Promise<void> {
    const { name, host } = instance;
    if (this.#instances.live().includes(instance)) await this.reload(name, host === "*" ? undefined : host, progress);
  }

  /** Prepares many changes as one, for another configuration; nothing happens yet. */
  transition(steps: TransitionSteps, configs: { previous: Config; next: Config }): Transition {
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
      build: (code, instance, options) => this.#builder.build(code, instance, options),
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

  /** Calls `module.ready` of all modules, in the order of loading. */
  async ready(): Promise<void> {
    for (const instance of this.#instances.live()) await instance.ready();
  }

  /**
   * Lets open requests end while all modules can still serve them; new requests reach no module.
   */
  async drain(deadline: Deadline): Promise<void> {
    this.#isStopping = true;
    this.quarantined.clear();
    const waits = this.#lastFirst().flatMap((instance) => instance.withdraw("item"));
    await deadline.within(this.#deps.grace()).wait(Promise.all(waits));
  }

  /** Returns what modules save for the instances that replace them in another process. */
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

  // --------------------------------------------------------------------------------------------------------
  // steps

  /** Completes the loads into the running host; unloads instances whose ports cannot be opened. */
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
    const previous = catalog.adopted(name);
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
      progress.step(`loaded ${fresh().map(labelOf).join(", ")} next to the running instances`);
      this.#commit(inOrder(fresh()));
    } catch (error) {
      for (const instance of fresh().reverse()) await instance.abandon();
      if (previous !== undefined) catalog.adopt(previous);
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
    progress.step("the previous instances are unloaded");
  }

  async #ensureLoaded(name: string, host: string, operation: Operation): Promise<Instance> {
    const live = this.find(name, host);
    if (live !== undefined) return live;
    if (this.#deps.catalog.isDisabled(name, host)) throw new ModhostError("MODULE_DISABLED", { name });
    this.#instances.expect(name);
    this.quarantined.assertNotQuarantined(name, host, operation);
    const at = operation.chain.indexOf(name);
    if (at >= 0) throw cycle([...operation.chain.slice(at), name]);
    const earlier = operation.failed.get(keyOf(name, host)) ?? operation.failed.get(keyOf(name, "*"));
    if (earlier !== undefined) throw earlier;
    const inner = { ...operation, chain: [...operation.chain, name] };
    try {
      return await this.#loadNew(name, host, inner);
    } catch (error) {
      const scope = this.#deps.catalog.adopted(name) === undefined ? "*" : host;
      operation.failed.set(keyOf(name, scope), error);
      this.#fail(name, scope, error);
      if (!this.#instances.has(name)) this.#deps.catalog.forget(name);
      throw error;
    }
  }

  async #loadNew(name: string, host: string, operation: Operation): Promise<Instance> {
    const { catalog, announce } = this.#deps;
    const isKnown = catalog.adopted(name) !== undefined;
    const code = await catalog.code(name);
    if (!isKnown) catalog.verify(code);
    const scope = code.global ? "*" : host;
    for (const dependency of code.depends) await this.#ensureDependency(name, dependency, scope, operation);
    const instance = await withState(this.#deps.takeSaved(keyOf(name, scope)), (options) =>
      this.#builder.build(code, { name, host: scope }, { reloading: false, ...options }, operation),
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
    this.#failures.forget(name, scope === "*" ? undefined : instance.host);
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

  /** Activates instances in one synchronous step: all or none. */
  #commit(instances: readonly Instance[]): void {
    if (this.#isStopping) throw new Error("The host is stopping");
    commitAll(instances);
  }

  #fail(name: string, host: string, error: unknown): void {
    let file: string | undefined;
    try {
      file = this.#deps.catalog.locate(name).file;
    } catch {} // The module has no file; `error` is about that.
    this.#failures.add({ name, host, error, file });
  }
}
