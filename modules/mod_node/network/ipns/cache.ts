/** Caches the paths that names resolved to, for as long as their records allow. */
import { failure } from "../../util/errors.ts";
import { LRU } from "../../util/lru.ts";

interface Entry {
  readonly path: string;
  /** When the entry was stored, in milliseconds since 1970. */
  readonly since: number;
  readonly ttlMs: number;
}

/** A cache of names that evicts the least recently used ones. */
export class NameCache {
  readonly #entries: LRU<string, Entry>;
  readonly #bound: () => number;

  /**
   * @param bound returns the current maximum number of milliseconds to cache an entry @throws
   * NodeError for a negative size
   */
  constructor(size: number, bound: () => number = () => Number.POSITIVE_INFINITY) {
    if (size < 0) throw failure("CONFIG_INVALID", { reason: "cannot specify negative resolve cache size" });
    this.#entries = new LRU(size);
    this.#bound = bound;
  }

  get(name: string): { readonly path: string; readonly until: number } | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    const until = entry.since + Math.min(entry.ttlMs, this.#bound());
    if (until > Date.now()) return { path: entry.path, until };
    this.#entries.delete(name);
    return undefined;
  }

  /** @param ttlMs milliseconds; without a positive value nothing is cached */
  set(name: string, path: string, ttlMs: number): void {
    if (ttlMs > 0 && this.#bound() > 0) this.#entries.set(name, { path, since: Date.now(), ttlMs });
    else this.#entries.delete(name);
  }

  /**
   * Evicts the least recently used names above the new size. @throws NodeError for a negative size
   */
  resize(size: number): void {
    if (size < 0) throw failure("CONFIG_INVALID", { reason: "cannot specify negative resolve cache size" });
    this.#entries.resize(size);
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }
}
