/** Keeping so much, and forgetting what was set or used longest ago. */

export interface LRUOptions<K, V> {
  /** Keys that are never forgotten: with them alone it may hold more. */
  readonly isExempt?: (key: K) => boolean;
  /** Told of what it lets go of by itself: what is forgotten, and a value in whose place another one comes. */
  readonly onEvict?: (key: K, value: V) => void;
}

/** So many values by key, in the order in which they were set or used last. */
export class LRU<K, V> {
  readonly #maxEntries: number;
  readonly #options: LRUOptions<K, V>;
  readonly #entries = new Map<K, V>();

  constructor(most: number, options: LRUOptions<K, V> = {}) {
    this.#maxEntries = most;
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The oldest first. What is taken out meanwhile is passed over. */
  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#entries.entries();
  }

  /** Looks, and changes nothing. */
  peek(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Looks; what is there is the newest from then on. */
  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  /** It is the newest from then on. */
  set(key: K, value: V): void {
    const before = this.#entries.get(key);
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (before !== undefined && before !== value) this.#options.onEvict?.(key, before);
    if (this.#entries.size > this.#maxEntries) this.#evict();
  }

  /** Takes it out; whether it was there. */
  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  #evict(): void {
    const { isExempt: stays, onEvict: forgotten } = this.#options;
    for (const [key, value] of this.#entries) {
      if (stays?.(key)) continue;
      this.#entries.delete(key);
      forgotten?.(key, value);
      return;
    }
  }
}
