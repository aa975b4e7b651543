/** What the timers of modules, and their `module.now()`, go by. */
export interface Clock {
  /** Seconds since 1970. */
  now(): number;
  /**
   * Calls `run` once, `delay` seconds from now; what is returned calls that off. A clock may wait for the promise that
   * `run` gives, which never rejects.
   */
  after(delay: number, run: () => Promise<void>): () => void;
}

/** The longest delay of a timer of the platform, milliseconds. */
const MAX_DELAY = 2 ** 31 - 1;

/** The time of the system; delays of any length. */
export const systemClock: Clock = {
  now: () => Date.now() / 1000,
  after(delay, run) {
    let handle: NodeJS.Timeout;
    const wait = (milliseconds: number) => {
      const part = Math.min(milliseconds, MAX_DELAY);
      handle = setTimeout(() => {
        if (part < milliseconds) wait(milliseconds - part);
        else void run();
      }, part);
    };
    wait(delay * 1000);
    return () => clearTimeout(handle);
  },
};
