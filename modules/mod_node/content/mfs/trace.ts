/**
 * Records what a call has read in a tree that several hosts change. So it can be decided whether
 * changes of other hosts could have led to another result.
 */
import type { NamespaceChange, TracedCall } from "./journal.ts";

/** Key of a directory or an entry: a slash before each name. The key of the root is empty. */
const keyOf = (names: readonly string[]): string => names.map((name) => `/${name}`).join("");

export class Trace implements TracedCall {
  /** The changes of the call, in order. */
  readonly changes: NamespaceChange[] = [];
  /** Entries that were looked up, whether they exist or not. */
  readonly #entries = new Set<string>();
  /** Directories in which something was looked up. */
  readonly #folders = new Set<string>();
  /** Directories whose whole content was read. */
  readonly #whole = new Set<string>();

  /** An entry of a directory was looked up. The directories above it were looked up before. */
  looked(folder: readonly string[], name: string): void {
    const key = keyOf(folder);
    this.#folders.add(key);
    this.#entries.add(`${key}/${name}`);
  }

  /** A directory was stored. Its CID depends on everything below it. */
  stored(folder: readonly string[]): void {
    this.#whole.add(keyOf(folder));
  }

  dependsOn(changes: readonly NamespaceChange[]): boolean {
    return changes.some((change) => this.#dependsOn(change));
  }

  #dependsOn(change: NamespaceChange): boolean {
    const folder = keyOf(change.at);
    const name = "put" in change ? change.put.name : "remove" in change ? change.remove : undefined;
    if (name === undefined) return this.#folders.has(folder) || this.#isWithinWhole(`${folder}/`);
    const entry = `${folder}/${name}`;
    return this.#entries.has(entry) || this.#isWithinWhole(entry);
  }

  #isWithinWhole(key: string): boolean {
    for (const whole of this.#whole) if (key.startsWith(`${whole}/`)) return true;
    return false;
  }
}
