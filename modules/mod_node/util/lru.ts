/** Keeping so much, and forgetting what was set or used longest ago. */

export interface RecentOptions<K, V> {
  /** Keys that are never forgotten: with them alone it may hold more. */
  readonly stays?: (key: K) => boolean;
  /** Told of what it lets go of by itself: what is forgotten, and a value in whose place another one comes. */
  readonly forgotten?: (key: K, value: V) => void;
}

/** So many values by key, in the order in which they were set or used last. */
export class Recent<K, V> {
  readonly #most: number;
  readonly #options: RecentOptions<K, V>;
  readonly #held = new Map<K, V>();

  constructor(most: number, options: RecentOptions<K, V> = {}) {
    this.#most = most;
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  /** The oldest first. What is taken out meanwhile is passed over. */
  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.#held.entries();
  }

  /** Looks, and changes nothing. */
  get(key: K): V | undefined {
    return this.#held.get(key);
  }

  /** Looks; what is there is the newest from then on. */
  use(key: K): V | undefined {
    const value = this.#held.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  /** It is the newest from then on. */
  set(key: K, value: V): void {
    const before = this.#held.get(key);
    this.#held.delete(key);
    this.#held.set(key, value);
    if (before !== undefined && before !== value) this.#options.forgotten?.(key, before);
    if (this.#held.size > this.#most) this.#forget();
  }

  /** Takes it out; whether it was there. */
  delete(key: K): boolean {
    return this.#held.delete(key);
  }

  #forget(): void {
    const { stays, forgotten } = this.#options;
    for (const [key, value] of this.#held) {
      if (stays?.(key)) continue;
      this.#held.delete(key);
      forgotten?.(key, value);
      return;
    }
  }
}
