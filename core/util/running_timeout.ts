/** The longest delay of a timer of the platform, milliseconds. */
const MAX_DELAY = 2 ** 31 - 1;

const PARTS = 4;

/**
 * Calls `late` once this process has run for `milliseconds`. However long it stood still meanwhile, suspended or busy,
 * that counts as a quarter of the time at most: whatever arrived or was done in between is taken in before anybody is
 * judged. A time that is longer than the platform's timers allow for never ends.
 */
export class RunningTimeout {
  readonly #late: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Parts that have passed. */
  #passed = 0;

  constructor(milliseconds: number, late: () => void) {
    this.#late = late;
    if (milliseconds <= MAX_DELAY) this.#timer = setTimeout(() => this.#pass(), Math.ceil(milliseconds / PARTS));
  }

  /** The whole time begins anew. */
  refresh(): void {
    this.#passed = 0;
    this.#timer?.refresh();
  }

  clear(): void {
    clearTimeout(this.#timer);
  }

  #pass(): void {
    this.#passed += 1;
    if (this.#passed < PARTS) this.#timer?.refresh();
    else this.#late();
  }
}
