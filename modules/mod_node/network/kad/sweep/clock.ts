/** Abstracts time, so that a simulation can supply its own. */
export interface Clock {
  /** Returns the current time in milliseconds since 1970. */
  now(): number;
  /**
   * Runs the function once after that many milliseconds, unless the returned function is called
   * before.
   */
  after(milliseconds: number, run: () => void): () => void;
}

/** Longest delay that a timer supports, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(milliseconds, run) {
    const timer = setTimeout(run, Math.min(milliseconds, MAX_TIMER_MS)).unref();
    return () => clearTimeout(timer);
  },
};
