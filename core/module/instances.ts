import type { ModuleState } from "../types.ts";
import { ModhostError } from "../util/errors.ts";
import { errorOwner } from "./error_owner.ts";
import { type Instance, keyOf } from "./instance.ts";
import type { Dependency, Dependent, ModuleContext } from "./module_context.ts";

/** The instances that a host has, and what is asked about them. */
export class Instances {
  /** In the order of loading. */
  readonly #live = new Map<string, Instance>();
  /** The same by the name of the module, and then by key: one for each of its hosts. */
  readonly #named = new Map<string, Map<string, Instance>>();
  readonly #loading = new Set<Instance>();
  #leaving: ReadonlySet<string> = new Set();
  /** Names of all that was ever asked for, whatever became of it. */
  readonly #known = new Set<string>();
  /** By module: steps of its unloading that did not come to their end. */
  readonly #unfinished = new Map<string, Set<string>>();

  /** From now on `residue` knows the module, whatever becomes of it. */
  expect(name: string): void {
    this.#known.add(name);
  }

  /** It is being loaded, until `end`. */
  begin(instance: Instance): void {
    this.#loading.add(instance);
  }

  end(instance: Instance): void {
    this.#loading.delete(instance);
  }

  /** It is live, in the place of one with the same key. */
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

  /** These are about to go: nobody who is loaded now gets them. */
  leave(keys: ReadonlySet<string>): void {
    this.#leaving = keys;
  }

  /** Steps of its unloading did not come to their end. */
  keep({ name, unfinished }: Instance): void {
    this.#unfinished.set(name, new Set([...(this.#unfinished.get(name) ?? []), ...unfinished]));
  }

  /** All that are live, in the order of loading. */
  live(): Instance[] {
    return [...this.#live.values()];
  }

  states(): ModuleState[] {
    return [...this.live(), ...[...this.#loading].filter(({ key }) => !this.#live.has(key))].map((instance) =>
      instance.state(),
    );
  }

  /** The instance of the host, else that of the whole server. */
  find(name: string, host: string): Instance | undefined {
    return this.#staying(keyOf(name, host)) ?? this.#staying(keyOf(name, "*"));
  }

  /**
   * What `module.depends` finds: as `find`, but of those that are made together with the one that asks.
   * @throws {ModhostError} MODULE_CYCLE for one of these that is not made yet
   */
  dependencyOf({ name: asking, host, phase, group }: Dependent, name: string): Dependency | undefined {
    const together = phase === "loading" ? group : undefined;
    for (const key of new Set([keyOf(name, host), keyOf(name, "*")])) {
      const found = together?.has(key) ? together.get(key) : this.#staying(key);
      if (found !== undefined) return found;
      if (together?.has(key)) throw cycle([asking, name, asking]);
    }
    return undefined;
  }

  #staying(key: string): Instance | undefined {
    return this.#leaving.has(key) ? undefined : this.#live.get(key);
  }

  /** Those of a module: of all hosts, or of the one and the whole server. */
  of(name: string, host?: string): Instance[] {
    const all = [...(this.#named.get(name)?.values() ?? [])];
    return host === undefined ? all : all.filter((instance) => instance.host === host || instance.host === "*");
  }

  has(name: string): boolean {
    return this.#named.has(name);
  }

  /**
   * What is left of a module, one line for each thing; nothing once it is gone.
   * @throws {ModhostError} MODULE_UNKNOWN, since nothing is left of a misspelt name, too
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
    ];
  }

  /** The instance whose code an error comes from, as far as its stack tells. */
  errorOwner(error: unknown): Instance | undefined {
    return errorOwner([...this.live(), ...this.#loading], error);
  }

  /** The instance whose code runs now, as far as is known. */
  runningOwner(): Instance | undefined {
    return [...this.live(), ...this.#loading].find(({ usage }) => usage.isRunning);
  }
}

export function cycle(names: readonly string[]): ModhostError {
  return new ModhostError("MODULE_CYCLE", { cycle: names.join(" -> "), names });
}
