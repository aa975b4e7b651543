/** A queue between a producer and a consumer that run at different speeds. */

/** Serves one reader. It still reads the values that were pushed before the end. */
export class Queue<T> implements AsyncIterable<T> {
  #items: T[] = [];
  #at = 0;
  #over: { readonly failure?: { readonly reason: unknown } } | undefined;
  #wake: (() => void) | undefined;

  /** Number of values that wait for the reader. */
  get length(): number {
    return this.#items.length - this.#at;
  }

  push(value: T): void {
    if (this.#over !== undefined) return;
    this.#items.push(value);
    this.#wake?.();
  }

  /** Removes the value that has waited longest; undefined when there is none. */
  dropOldest(): T | undefined {
    return this.length === 0 ? undefined : this.#take();
  }

  end(): void {
    this.#over ??= {};
    this.#wake?.();
  }

  /** Ends the queue; the reader gets `reason` as an error after the remaining values. */
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
    // Removing values one by one with `shift` would move all the others each time.
    if (this.#at * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#at);
      this.#at = 0;
    }
    return value;
  }
}
