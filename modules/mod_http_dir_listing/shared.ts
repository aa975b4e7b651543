/** Shares the result of work between concurrent callers, and limits how much work runs at once. */

export class Shared {
  readonly #doing = new Map<string, Promise<unknown>>();
  readonly #waiting: (() => void)[] = [];
  readonly #most: number;
  #running = 0;

  /** Number of pieces of work that run at a time; the rest waits. */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  /** Resolves to the result of `work`, or of the pending work with the same key. */
  get<T>(key: string, work: () => Promise<T>): Promise<T> {
    const known = this.#doing.get(key) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const doing = this.#do(work).finally(() => this.#doing.delete(key));
    this.#doing.set(key, doing);
    return doing;
  }

  async #do<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await work();
    } finally {
      // The next waiting work inherits this slot.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
