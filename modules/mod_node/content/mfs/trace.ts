/**
 * What a call has looked at in a tree that several hosts change: whether it would have gone the
 * same way after their changes.
 */
import type { CallMade, Change } from "./journal.ts";

/** Of a directory or an entry, with a slash before each name; the root is empty. */
const keyOf = (names: readonly string[]): string => names.map((name) => `/${name}`).join("");

export class Trace implements CallMade {
  /** What it has changed, in order. */
  readonly changes: Change[] = [];
  /** Entries that were looked up, also in vain. */
  readonly #entries = new Set<string>();
  /** Directories in which something was looked up. */
  readonly #folders = new Set<string>();
  /** Directories of which everything counted. */
  readonly #whole = new Set<string>();

  /** An entry of a directory was looked up. On the way to it the directories above were. */
  looked(folder: readonly string[], name: string): void {
    const key = keyOf(folder);
    this.#folders.add(key);
    this.#entries.add(`${key}/${name}`);
  }

  /** A directory was stored: its CID depends on everything below. */
  stored(folder: readonly string[]): void {
    this.#whole.add(keyOf(folder));
  }

  dependsOn(changes: readonly Change[]): boolean {
    return changes.some((change) => this.#dependsOn(change));
  }

  #dependsOn(change: Change): boolean {
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
