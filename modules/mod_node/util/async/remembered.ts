/**
 * Caches a value that takes long to determine. It refreshes the value in the background and
 * meanwhile returns the previous one.
 */
export class Remembered<T> {
  readonly #read: () => Promise<T>;
  readonly #maxAgeMs: number;
  readonly #maxWaitMs: number;
  #known: { readonly value: T; readonly since: number } | undefined;
  #reading: Promise<void> | undefined;

  /**
   * Refreshes the value once it is older than `maxAgeMs`; a caller waits for that for at most
   * `maxWaitMs`.
   */
  constructor(read: () => Promise<T>, maxAgeMs: number, maxWaitMs: number) {
    this.#read = read;
    this.#maxAgeMs = maxAgeMs;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Undefined while the value is not known yet. */
  async value(): Promise<T | undefined> {
    const isFresh = this.#known !== undefined && performance.now() - this.#known.since < this.#maxAgeMs;
    if (!isFresh) {
      this.#reading ??= this.#refresh();
      const waited = Promise.withResolvers<void>();
      const timer = setTimeout(waited.resolve, this.#maxWaitMs);
      await Promise.race([this.#reading, waited.promise]);
      clearTimeout(timer);
    }
    return this.#known?.value;
  }

  async #refresh(): Promise<void> {
    try {
      this.#known = { value: await this.#read(), since: performance.now() };
    } catch {
      // The next call tries again.
    } finally {
      this.#reading = undefined;
    }
  }
}
