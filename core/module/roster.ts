import { ModhostError } from "../errors.ts";
import type { ModuleState } from "../types.ts";
import { culpritOf } from "./culprit.ts";
import { type Instance, keyOf } from "./instance.ts";
import type { Surroundings } from "./surroundings.ts";

/** The instances that a host has, and what is asked about them. */
export class Roster {
  readonly live = new Map<string, Instance>();
  readonly loading = new Map<string, Instance>();
  /** Names of all that was ever asked for, whatever became of it. */
  readonly known = new Set<string>();
  /** By module: steps of its unloading that did not come to their end. */
  readonly unfinished = new Map<string, Set<string>>();

  states(): ModuleState[] {
    return [...this.live.values(), ...[...this.loading.values()].filter(({ key }) => !this.live.has(key))].map(
      (instance) => instance.state(),
    );
  }

  /** What `module.depends` finds: the instance of the same host, else that of the whole server. */
  find(name: string, host: string, asking?: Instance): Instance | undefined {
    for (const key of new Set([keyOf(name, host), keyOf(name, "*")])) {
      const group = asking?.phase === "loading" ? asking.group : undefined;
      const found = group?.has(key) ? group.get(key) : this.live.get(key);
      if (found !== undefined) return found;
      if (group?.has(key)) throw cycle([asking?.name ?? name, name, asking?.name ?? name]);
    }
    return undefined;
  }

  /** Those of a module: of all hosts, or of the one and the whole server. */
  of(name: string, host?: string): Instance[] {
    return [...this.live.values()].filter(
      (instance) => instance.name === name && (host === undefined || instance.host === host || instance.host === "*"),
    );
  }

  has(name: string): boolean {
    return this.of(name).length > 0;
  }

  /**
   * What is left of a module, one line for each thing; nothing once it is gone.
   * @throws {ModhostError} MODULE_UNKNOWN, since nothing is left of a misspelt name, too
   */
  residue(name: string, { bus, items, shared, timers }: Surroundings): string[] {
    if (!this.known.has(name))
      throw new ModhostError("MODULE_UNKNOWN", { name, known: [...this.known].join(", ") || "none" });
    return [
      ...[...this.live.values(), ...this.loading.values()]
        .filter((instance) => instance.name === name)
        .map(({ phase, host }) => `the module itself (${phase}, host ${host})`),
      ...[items, bus, timers, shared].flatMap((registry) => registry.ownedBy(name)),
      ...(this.unfinished.get(name) ?? []),
    ];
  }

  /** The instance whose code an error comes from, as far as its stack tells. */
  culpritOf(error: unknown): Instance | undefined {
    return culpritOf([...this.live.values(), ...this.loading.values()], error);
  }
}

export function cycle(names: readonly string[]): ModhostError {
  return new ModhostError("MODULE_CYCLE", { cycle: names.join(" -> "), names });
}
