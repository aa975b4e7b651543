/**
 * When the disk is read on the thread that wants the bytes. The hop to the thread pool and back costs ten times what it takes to copy
 * a block that the system has in memory, as it mostly has what was read before; a disk that has to be waited for would hold everybody.
 */

/** Milliseconds of such reads in one turn of the event loop: whoever reads on and on lets others have theirs. */
const MAX_TURN_MS = 1;
/** Reads took so much longer on average than it takes to copy what is in memory: the disk is being waited for. */
const SLOW_MS = 0.3;
/** In which any machine copies. */
const BYTES_PER_MS = 1024 * 1024;
/** One that was interrupted by other work of the machine says no more than this. */
const MAX_COUNTED_MS = 1;
const WEIGHT = 0.1;
/** Until the disk is tried again. */
const PAUSE_MS = 1000;

export class InlineReads {
  readonly #now: () => number;
  #average = 0;
  #pausedUntil = 0;
  /** Milliseconds in this turn. */
  #spent = 0;
  #isTurning = false;

  /** `now` is in milliseconds. */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** Runs `read`, of so many bytes; undefined when it is better not done here and now. */
  run<T>(bytes: number, read: () => T): T | undefined {
    const began = this.#now();
    if (this.#spent >= MAX_TURN_MS || began < this.#pausedUntil) return undefined;
    if (!this.#isTurning) {
      this.#isTurning = true;
      setImmediate(() => {
        this.#isTurning = false;
        this.#spent = 0;
      });
    }
    const result = read();
    const ended = this.#now();
    this.#spent += ended - began;
    const waited = Math.max(0, ended - began - bytes / BYTES_PER_MS);
    this.#average += WEIGHT * (Math.min(waited, MAX_COUNTED_MS) - this.#average);
    if (this.#average > SLOW_MS) {
      this.#average = 0;
      this.#pausedUntil = ended + PAUSE_MS;
    }
    return result;
  }
}
