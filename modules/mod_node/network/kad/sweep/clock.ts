/** Time, which a simulation has of its own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Runs it once, so many milliseconds later, unless what is returned is called before. */
  after(milliseconds: number, run: () => void): () => void;
}

/** Longest time that a timer can be set to, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(milliseconds, run) {
    const timer = setTimeout(run, Math.min(milliseconds, MAX_TIMER_MS)).unref();
    return () => clearTimeout(timer);
  },
};
