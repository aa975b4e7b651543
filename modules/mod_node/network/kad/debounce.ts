/** Detects when a series of events has stopped. */

/** Milliseconds without an event after which the series counts as over. */
const QUIET_AFTER_MS = 300;

export class Debounce {
  readonly #onSettled: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** When the series began, as `Date.now()`. */
  #began = 0;

  constructor(onSettled: () => void) {
    this.#onSettled = onSettled;
  }

  get isSettled(): boolean {
    return this.#timer === undefined;
  }

  /** Milliseconds since the series began; 0 if it is over. */
  pendingMs(): number {
    return this.isSettled ? 0 : Date.now() - this.#began;
  }

  trigger(): void {
    if (this.#timer === undefined) this.#began = Date.now();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#onSettled();
    }, QUIET_AFTER_MS).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
