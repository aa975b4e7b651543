/** A count that only grows, and that callers can wait for. */
export class Milestone {
  #count = 0;
  #waiters: { readonly count: number; readonly resolve: () => void; readonly reject: (error: unknown) => void }[] = [];

  get count(): number {
    return this.#count;
  }

  advance(by: number): void {
    this.#count += by;
    const reached = this.#waiters.filter(({ count }) => count <= this.#count);
    this.#waiters = this.#waiters.filter(({ count }) => count > this.#count);
    for (const { resolve } of reached) resolve();
  }

  /** Resolves when the count is at least `count`; rejects when `fail` is called before. */
  reach(count: number): Promise<void> {
    if (count <= this.#count) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ count, resolve, reject });
    });
  }

  /** Rejects all waiting callers. */
  fail(error: unknown): void {
    const waiting = this.#waiters;
    this.#waiters = [];
    for (const { reject } of waiting) reject(error);
  }
}
