/**
 * Resolves with the result of `work`, unless the signal aborts before. Aborting does not stop the
 * work itself.
 * @throws the signal's reason
 */
export async function raceSignal<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  const { promise: left, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await Promise.race([work, left]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/**
 * Reads sources, one at a time, until the signal aborts. All sources share one abort listener,
 * because there may be very many small ones; `end` removes it.
 */
export class AbortableSources {
  readonly #signal: AbortSignal | undefined;
  /** Rejects the pending read. */
  #giveUp: ((reason: unknown) => void) | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    signal?.addEventListener("abort", this.#leave, { once: true });
  }

  readonly #leave = () => this.#giveUp?.(this.#signal?.reason);

  /** To be called after the last source has been read. */
  end(): void {
    this.#signal?.removeEventListener("abort", this.#leave);
  }

  /**
   * Yields the values of `source` until the signal aborts. Then it ends the source without waiting
   * for a pending value. `next` rejects with the signal's reason, or with the error of the source.
   */
  read<T>(source: AsyncIterable<T>): AsyncIterableIterator<T, undefined, undefined> {
    const iterator = source[Symbol.asyncIterator]();
    let over = false;
    const end = async () => {
      over = true;
      await iterator.return?.();
    };
    const refuse = async (reason: unknown): Promise<never> => {
      await end();
      throw reason;
    };
    const pull = () =>
      new Promise<IteratorResult<T, undefined>>((resolve, reject) => {
        const leave = (reason: unknown) => {
          reject(reason);
          // Not awaited: a generator that waits for a value ends only after that value.
          end().catch(() => {});
        };
        this.#giveUp = leave;
        Promise.resolve(iterator.next()).then((result) => {
          over ||= result.done === true;
          this.#giveUp = undefined;
          resolve(result);
        }, leave);
      });
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: () => {
        if (over) return Promise.resolve({ done: true, value: undefined });
        return this.#signal?.aborted ? refuse(this.#signal.reason) : pull();
      },
      async return() {
        if (!over) await end();
        return { done: true, value: undefined };
      },
    };
  }
}
