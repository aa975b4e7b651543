import type { ModuleState } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { countStarted, type Started, startedBy, watchStarted } from "../util/started.ts";
import { accountFor, type Usage } from "../util/usage.ts";
import { errorOwner } from "./error_owner.ts";
import { type Instance, keyOf } from "./instance.ts";
import type { ModuleSource } from "./locate.ts";
import type { Dependency, Dependent, ModuleContext } from "./module_context.ts";

/** The instances of a host, with lookups. */
export class Instances {
  /** Live instances in the order of loading. */
  readonly #live = new Map<string, Instance>();
  /** The same instances by module name, then by key: one for each of its hosts. */
  readonly #named = new Map<string, Map<string, Instance>>();
  readonly #loading = new Set<Instance>();
  /**
   * By key, for every instance that was ever created: the location of its code, and an account for
   * work that it still does after the unload.
   */
  readonly #made = new Map<string, { readonly code: { readonly source: ModuleSource }; readonly account: Usage }>();
  #leaving: ReadonlySet<string> = new Set();
  /** Names of all modules that were ever requested, whether or not they loaded. */
  readonly #known = new Set<string>();
  /** By module: accounts of unloaded instances that have left something running. */
  readonly #unloaded = new Map<string, readonly Usage[]>();
  /** By module: steps of its unload that did not finish. */
  readonly #unfinished = new Map<string, Set<string>>();

  constructor() {
    watchStarted();
  }

  /** Records the name, so that `residue` knows the module whatever happens to it. */
  expect(name: string): void {
    this.#known.add(name);
  }

  /** Records that an instance is loading, until `end` is called. */
  begin(instance: Instance): void {
    this.#loading.add(instance);
    const { name, host, key, code } = instance;
    if (code.source.file !== undefined)
      this.#made.set(key, { code: { source: code.source }, account: accountFor(host === "*" ? name : key) });
  }

  end(instance: Instance): void {
    this.#loading.delete(instance);
  }

  /** Adds a live instance; it replaces one with the same key. */
  add(instance: Instance): void {
    const { name, key } = instance;
    let named = this.#named.get(name);
    if (named === undefined) {
      this.#unfinished.delete(name);
      this.#named.set(name, (named = new Map()));
    }
    named.set(key, instance);
    this.#live.set(key, instance);
  }

  remove({ name, key }: Instance): void {
    this.#live.delete(key);
    const named = this.#named.get(name);
    named?.delete(key);
    if (named?.size === 0) this.#named.delete(name);
  }

  /** Marks instances that are about to be unloaded: modules that load now do not get them. */
  markLeaving(keys: ReadonlySet<string>): void {
    this.#leaving = keys;
  }

  /** Records the steps of its unload that did not finish. */
  recordUnfinished({ name, unfinished }: Instance): void {
    this.#unfinished.set(name, new Set([...(this.#unfinished.get(name) ?? []), ...unfinished]));
  }

  /** Records what an unloaded instance has left running; it counts for the module until it ends. */
  recordStarted(name: string, account: Usage): void {
    const all = new Set([...(this.#unloaded.get(name) ?? []), account]);
    this.#unloaded.set(
      name,
      [...all].filter((each) => startedBy(each).length > 0),
    );
  }

  /** Returns what unloaded instances of a module have left running. */
  left(name: string): Started[] {
    return this.#unloaded.get(name)?.flatMap((usage) => startedBy(usage)) ?? [];
  }

  /** Returns all live instances in the order of loading. */
  live(): Instance[] {
    return [...this.#live.values()];
  }

  states(): ModuleState[] {
    return [...this.live(), ...[...this.#loading].filter(({ key }) => !this.#live.has(key))].map((instance) =>
      this.#stateOf(instance),
    );
  }

  #stateOf(instance: Instance): ModuleState {
    const state = instance.state();
    const left = Object.entries(countStarted(this.left(instance.name)));
    const holds = Object.fromEntries(left.map(([kind, count]) => [`${kind} of a previous instance`, count]));
    return { ...state, holds: { ...state.holds, ...holds } };
  }

  /** Returns the instance of the host, or else the global one. */
  find(name: string, host: string): Instance | undefined {
    return this.#staying(keyOf(name, host)) ?? this.#staying(keyOf(name, "*"));
  }

  /**
   * Returns what `module.depends` finds: as `find`, but an instance that is built together with the
   * caller takes precedence.
   * @throws {ModhostError} MODULE_CYCLE for one of these that is not built yet
   */
  dependencyOf({ name: dependent, host, phase, group }: Dependent, name: string): Dependency | undefined {
    const together = phase === "loading" ? group : undefined;
    for (const key of new Set([keyOf(name, host), keyOf(name, "*")])) {
      const found = together?.has(key) ? together.get(key) : this.#staying(key);
      if (found !== undefined) return found;
      if (together?.has(key)) throw cycle([dependent, name, dependent]);
    }
    return undefined;
  }

  #staying(key: string): Instance | undefined {
    return this.#leaving.has(key) ? undefined : this.#live.get(key);
  }

  /** Returns the instances of a module: on all hosts, or on one host plus the global one. */
  of(name: string, host?: string): Instance[] {
    const all = [...(this.#named.get(name)?.values() ?? [])];
    return host === undefined ? all : all.filter((instance) => instance.host === host || instance.host === "*");
  }

  has(name: string): boolean {
    return this.#named.has(name);
  }

  /**
   * Returns what is left of a module, one line for each thing; empty when it is completely gone.
   * @throws {ModhostError} MODULE_UNKNOWN, because a misspelt name would look completely gone, too
   */
  residue(name: string, { bus, items, shared, timers }: ModuleContext): string[] {
    if (!this.#known.has(name))
      throw new ModhostError("MODULE_UNKNOWN", { name, known: [...this.#known].join(", ") || "none" });
    return [
      ...[...this.live(), ...this.#loading]
        .filter((instance) => instance.name === name)
        .map(({ phase, host }) => `the module itself (${phase}, host ${host})`),
      ...[items, bus, timers, shared].flatMap((registry) => registry.ownedBy(name)),
      ...(this.#unfinished.get(name) ?? []),
      ...this.left(name).map((each) => each.describe()),
    ];
  }

  /** Returns the instance whose code an error comes from, if its stack shows that. */
  errorOwner(error: unknown): Instance | undefined {
    return errorOwner([...this.live(), ...this.#loading], error);
  }

  /** Does the same for unloaded instances. */
  goneOwner(error: unknown): Usage | undefined {
    return errorOwner([...this.#made.values()], error)?.account;
  }

  /**
   * Returns the live instance of an account, or of the code whose evaluation the account counts;
   * else undefined.
   */
  ownerOf(account: Usage): Instance | undefined {
    return [...this.live(), ...this.#loading].find(
      ({ usage, code }) => usage === account || code.evaluated === account,
    );
  }

  /** Returns the instance whose code is running now, if that is known. */
  runningOwner(): Instance | undefined {
    return [...this.live(), ...this.#loading].find(({ usage }) => usage.isRunning);
  }
}

export function cycle(names: readonly string[]): ModhostError {
  return new ModhostError("MODULE_CYCLE", { cycle: names.join(" -> "), names });
}
