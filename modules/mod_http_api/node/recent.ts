/** Maps that forget what was set longest ago. */

export interface RecentOptions<K, V> {
  /** Keys that are never forgotten: with them alone it may hold more. */
  readonly stays?: (key: K) => boolean;
  /** Told of what is forgotten, and of nothing else that leaves. */
  readonly forgotten?: (key: K, value: V) => void;
}

/** A map in the order in which its entries were set last; it holds so many of them. */
export class Recent<K, V> extends Map<K, V> {
  readonly #most: number;
  readonly #options: RecentOptions<K, V>;

  constructor(most: number, options: RecentOptions<K, V> = {}) {
    super();
    this.#most = most;
    this.#options = options;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#most) this.#forget();
    return this;
  }

  #forget(): void {
    const { stays, forgotten } = this.#options;
    for (const [key, value] of this) {
      if (stays?.(key)) continue;
      this.delete(key);
      forgotten?.(key, value);
      return;
    }
  }
}
