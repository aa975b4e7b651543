/**
 * A value that takes long to find out: it is asked for in the background, and given as it was last.
 */
export class Remembered<T> {
  readonly #read: () => Promise<T>;
  readonly #maxAgeMs: number;
  readonly #maxWaitMs: number;
  #known: { readonly value: T; readonly since: number } | undefined;
  #reading: Promise<void> | undefined;

  /** Asked again once it is older than `maxAgeMs`; whoever wants it waits up to `maxWaitMs`. */
  constructor(read: () => Promise<T>, maxAgeMs: number, maxWaitMs: number) {
    this.#read = read;
    this.#maxAgeMs = maxAgeMs;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Undefined where it is not known yet. */
  async value(): Promise<T | undefined> {
    const isFresh = this.#known !== undefined && performance.now() - this.#known.since < this.#maxAgeMs;
    if (!isFresh) {
      this.#reading ??= this.#ask();
      const waited = Promise.withResolvers<void>();
      const timer = setTimeout(waited.resolve, this.#maxWaitMs);
      await Promise.race([this.#reading, waited.promise]);
      clearTimeout(timer);
    }
    return this.#known?.value;
  }

  async #ask(): Promise<void> {
    try {
      this.#known = { value: await this.#read(), since: performance.now() };
    } catch {
      // Asked again the next time.
    } finally {
      this.#reading = undefined;
    }
  }
}
