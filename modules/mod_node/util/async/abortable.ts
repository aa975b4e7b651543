/**
 * The result of `work`, unless the signal aborts before; the work itself goes on. @throws the
 * signal's reason
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
 * Sources that are read until the signal aborts, one at a time. They share one listener, since
 * there may be very many small ones: `end` removes it.
 */
export class AbortableSources {
  readonly #signal: AbortSignal | undefined;
  /** Ends the wait that is under way. */
  #giveUp: ((reason: unknown) => void) | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    signal?.addEventListener("abort", this.#leave, { once: true });
  }

  readonly #leave = () => this.#giveUp?.(this.#signal?.reason);

  /** To be called when none of them is read any more. */
  end(): void {
    this.#signal?.removeEventListener("abort", this.#leave);
  }

  /**
   * The values of `source`, until the signal aborts. The source is then told to end, but a silent
   * one is not awaited. `next` rejects with the signal's reason, or with what the source throws.
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
    const ask = () =>
      new Promise<IteratorResult<T, undefined>>((resolve, reject) => {
        const leave = (reason: unknown) => {
          reject(reason);
          // A generator that waits for a value would end only after it.
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
        return this.#signal?.aborted ? refuse(this.#signal.reason) : ask();
      },
      async return() {
        if (!over) await end();
        return { done: true, value: undefined };
      },
    };
  }
}
