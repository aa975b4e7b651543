/** The clock for the timers of modules and their `module.now()`. */
export interface Clock {
  /** Returns the seconds since 1970. */
  now(): number;
  /**
   * Calls `run` once, `delay` seconds from now; the returned function cancels that. A clock may
   * wait for the promise that `run` returns, which never rejects.
   */
  after(delay: number, run: () => Promise<void>): () => void;
}

/** The longest delay of a platform timer, in milliseconds. */
const MAX_DELAY = 2 ** 31 - 1;

/** The system time, with delays of any length. */
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
