/** The rule that a name stands for one exported type of `core` and `modules`. */
import type { Finding } from "./rules.ts";

/** How many files export a type of this name. Names of one file are left out. */
export type TypeCounts = Readonly<Record<string, number>>;

const inside = /^(?:core|modules)\//;
/** Pages run in browsers, and files of the scaffold are copied to new projects. */
const outside = /^(?:core\/cli\/scaffold|modules\/\w+\/pages)\//;

/**
 * Collects the types that files export, and compares them with the names that are known to be
 * shared.
 */
export class TypeNames {
  readonly #files = new Map<string, string[]>();

  add(path: string, names: Iterable<string>): void {
    if (!inside.test(path) || outside.test(path)) return;
    for (const name of names) {
      const files = this.#files.get(name);
      if (files === undefined) this.#files.set(name, [path]);
      else files.push(path);
    }
  }

  /**
   * A name that is new in a second file, and one of the known names that fewer files share by now.
   */
  findings(known: TypeCounts): Finding[] {
    const findings: Finding[] = [];
    for (const [name, files] of this.#files) {
      if (files.length > (known[name] ?? 1))
        findings.push({
          line: 0,
          rule: "a type name names one thing: choose the noun of its domain",
          text: `${name}: ${files.join(", ")}`,
        });
    }
    for (const [name, count] of Object.entries(known)) {
      const files = this.#files.get(name)?.length ?? 0;
      if (files < count)
        findings.push({
          line: 0,
          rule: "the list of shared type names is too long: --write shortens it",
          text: `${name}: ${files} and not ${count}`,
        });
    }
    return findings;
  }

  /** The known names that are still shared, with the lower of both counts. */
  shortened(known: TypeCounts): TypeCounts {
    return Object.fromEntries(
      Object.entries(known)
        .map(([name, count]) => [name, Math.min(count, this.#files.get(name)?.length ?? 0)] as const)
        .filter(([, count]) => count > 1),
    );
  }
}
