/** Bounds the time that the host spends on what one sandbox sends and prints. */

/** At most a quarter of all time, and a second in advance. Beyond that the sandbox waits. */
const SHARE = 0.25;
const MAX_CREDIT_MS = 1000;

export class TimeShare {
  #credit = MAX_CREDIT_MS;
  #at = performance.now();

  /** Counts milliseconds of work. Returns how many must pass before the host does more of it. */
  spend(took: number): number {
    const now = performance.now();
    this.#credit = Math.min(MAX_CREDIT_MS, this.#credit + (now - this.#at) * SHARE) - took;
    this.#at = now;
    return Math.max(0, -this.#credit / SHARE);
  }
}
