/** Values handed from who makes them to who reads them, each at a pace of its own. */

/** One reader. What was put before the end is read before it. */
export class Queue<T> implements AsyncIterable<T> {
  #items: T[] = [];
  #at = 0;
  #over: { readonly failure?: { readonly reason: unknown } } | undefined;
  #wake: (() => void) | undefined;

  /** Values that wait for the reader. */
  get length(): number {
    return this.#items.length - this.#at;
  }

  push(value: T): void {
    if (this.#over !== undefined) return;
    this.#items.push(value);
    this.#wake?.();
  }

  /** Takes the value that has waited longest away from the reader; undefined when there is none. */
  dropOldest(): T | undefined {
    return this.length === 0 ? undefined : this.#take();
  }

  end(): void {
    this.#over ??= {};
    this.#wake?.();
  }

  /** Ends; the reader gets `reason` after the values before it. */
  fail(reason: unknown): void {
    this.#over ??= { failure: { reason } };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      while (this.length > 0) yield this.#take();
      if (this.#over !== undefined) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#over.failure !== undefined) throw this.#over.failure.reason;
  }

  #take(): T {
    const value = this.#items[this.#at] as T;
    this.#at += 1;
    // Not one by one: shifting moves all that is behind.
    if (this.#at * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#at);
      this.#at = 0;
    }
    return value;
  }
}
