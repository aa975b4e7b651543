/** What names stood for, for as long as their records allow. */
import { NodeError } from "../../util/errors.ts";
import { LRU } from "../../util/lru.ts";

interface Entry {
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** Those that were asked for last are kept. */
export class NameCache {
  readonly #entries: LRU<string, Entry>;

  /** @throws NodeError of a size below zero */
  constructor(size: number) {
    if (size < 0) throw new NodeError("cannot specify negative resolve cache size");
    this.#entries = new LRU(size);
  }

  get(name: string): string | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined || entry.until > Date.now()) return entry?.path;
    this.#entries.delete(name);
    return undefined;
  }

  /** @param life milliseconds; nothing is kept for none */
  set(name: string, path: string, life: number): void {
    if (life > 0) this.#entries.set(name, { path, until: Date.now() + life });
    else this.#entries.delete(name);
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }
}
