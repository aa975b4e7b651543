/** Publishes a tree some time after a change, once for several changes, as the reference does. */

/** Milliseconds without a change before publishing, and the maximum delay of a change. */
const QUIET_MS = 300;
const MAX_DELAY_MS = 3000;
/** Milliseconds until a failed attempt is repeated. */
const RETRY_MS = 10_000;

export class Publisher {
  readonly #publish: () => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #since: number | undefined;
  #running: Promise<void> = Promise.resolve();

  /** `publish` is not called again before its last call has ended. */
  constructor(publish: () => Promise<void>, onFailure: (error: unknown) => void) {
    this.#publish = publish;
    this.#onFailure = onFailure;
  }

  /** To be called after a change. */
  touch(): void {
    const now = performance.now();
    this.#since ??= now;
    this.#schedule(Math.max(0, Math.min(QUIET_MS, this.#since + MAX_DELAY_MS - now)));
  }

  /** Publishes pending changes at once. Never rejects. */
  async settle(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#since !== undefined) this.#begin();
    await this.#running;
    clearTimeout(this.#timer);
  }

  #schedule(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#begin(), milliseconds).unref();
  }

  #begin(): void {
    this.#running = this.#running.then(async () => {
      this.#since = undefined;
      try {
        await this.#publish();
      } catch (error) {
        this.#onFailure(error);
        this.#since ??= performance.now() + RETRY_MS;
        this.#schedule(RETRY_MS);
      }
    });
  }
}
