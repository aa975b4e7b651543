/** A least-recently-used cache. */

export interface LRUOptions<K, V> {
  /** Keys that are never evicted: with them alone the cache may exceed its size. */
  readonly isExempt?: (key: K) => boolean;
  /** Called for each evicted entry, and for a value that is replaced by another one. */
  readonly onEvict?: (key: K, value: V) => void;
}

/** Up to a number of values by key, in the order of their last use. */
export class LRU<K, V> {
  #maxEntries: number;
  readonly #options: LRUOptions<K, V>;
  readonly #entries = new Map<K, V>();

  constructor(most: number, options: LRUOptions<K, V> = {}) {
    this.#maxEntries = most;
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** From the least to the most recently used. Entries that are deleted meanwhile are skipped. */
  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#entries.entries();
  }

  /** Reads a value without counting as a use. */
  peek(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Reads a value, which becomes the most recently used. */
  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  /** Sets a value, which becomes the most recently used. */
  set(key: K, value: V): void {
    const before = this.#entries.get(key);
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (before !== undefined && before !== value) this.#options.onEvict?.(key, before);
    if (this.#entries.size > this.#maxEntries) this.#evict();
  }

  /** Removes a value; true when it was there. */
  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  /** Takes another size from now on, and evicts what is beyond it. */
  resize(most: number): void {
    this.#maxEntries = most;
    while (this.#entries.size > most && this.#evict());
  }

  /** False when every entry is exempt. */
  #evict(): boolean {
    const { isExempt: stays, onEvict: forgotten } = this.#options;
    for (const [key, value] of this.#entries) {
      if (stays?.(key)) continue;
      this.#entries.delete(key);
      forgotten?.(key, value);
      return true;
    }
    return false;
  }
}
