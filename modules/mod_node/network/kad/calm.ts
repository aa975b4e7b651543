/** Tells whether something has stopped happening. */

/** Milliseconds without a disturbance. */
const CALM_AFTER_MS = 300;

export class Calm {
  readonly #onCalm: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** When it was calm last, as `Date.now()`. */
  #began = 0;

  constructor(onCalm: () => void) {
    this.#onCalm = onCalm;
  }

  get isCalm(): boolean {
    return this.#timer === undefined;
  }

  /** Milliseconds since it was calm. */
  disturbedFor(): number {
    return this.isCalm ? 0 : Date.now() - this.#began;
  }

  disturb(): void {
    if (this.#timer === undefined) this.#began = Date.now();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#onCalm();
    }, CALM_AFTER_MS).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
