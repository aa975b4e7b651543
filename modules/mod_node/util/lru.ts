export interface LRUOptions<K, V> {
  /** Protects a key from eviction. If all entries are exempt, the cache may exceed its size. */
  readonly isExempt?: (key: K) => boolean;
  /** Called for each evicted entry, and for each value that is replaced by a different one. */
  readonly onEvict?: (key: K, value: V) => void;
}

/** A least-recently-used cache. */
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

  /**
   * Iterates from the least to the most recently used entry. Entries that are deleted meanwhile are
   * skipped.
   */
  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#entries.entries();
  }

  /** Reads a value without counting as a use of it. */
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

  /** Removes a value; true if it existed. */
  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  /** Changes the maximum size and evicts the entries beyond it. */
  resize(most: number): void {
    this.#maxEntries = most;
    while (this.#entries.size > most && this.#evict());
  }

  /** Evicts one entry; false if all entries are exempt. */
  #evict(): boolean {
    const { isExempt, onEvict } = this.#options;
    for (const [key, value] of this.#entries) {
      if (isExempt?.(key)) continue;
      this.#entries.delete(key);
      onEvict?.(key, value);
      return true;
    }
    return false;
  }
}
