/** What names stood for, for as long as their records allow. */
import { NodeError } from "../errors.ts";

interface Entry {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** Those that were asked for last are kept. */
export class NameCache {
  readonly #entries = new Map<string, Entry>();
  readonly #size: number;

  /** @throws NodeError of a size below zero */
  constructor(size: number) {
    if (size < 0) throw new NodeError("cannot specify negative resolve cache size");
    this.#size = size;
  }

  get(name: string): string | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    this.#entries.delete(name);
    if (entry.until <= Date.now()) return undefined;
    this.#entries.set(name, entry);
    return entry.path;
  }

  /** @param life milliseconds; nothing is kept for none */
  set(name: string, path: string, life: number): void {
    this.#entries.delete(name);
    if (life <= 0) return;
    this.#entries.set(name, { path, until: Date.now() + life });
    if (this.#entries.size > this.#size) this.#entries.delete(this.#entries.keys().next().value as string);
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }
}
