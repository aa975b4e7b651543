/** The longest delay of a platform timer, in milliseconds. */
const MAX_DELAY = 2 ** 31 - 1;

const PARTS = 4;

/**
 * Calls `late` once this process has run for `milliseconds`. A time in which the process was
 * suspended or blocked counts as a quarter of the delay at most, so that data that arrived
 * meanwhile is processed before anything times out. A delay that is too long for platform timers
 * never ends.
 */
export class RunningTimeout {
  readonly #late: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Number of quarters that have passed. */
  #passed = 0;

  constructor(milliseconds: number, late: () => void) {
    this.#late = late;
    if (milliseconds <= MAX_DELAY) this.#timer = setTimeout(() => this.#pass(), Math.ceil(milliseconds / PARTS));
  }

  /** Starts the whole delay again. */
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
