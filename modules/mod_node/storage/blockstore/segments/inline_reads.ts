/**
 * When the disk is read on the thread that wants the bytes. The hop to the thread pool and back costs ten times what it takes to copy
 * a block that the system has in memory, as it mostly has what was read before, and often what was written or read by others; a
 * disk that has to be waited for would hold everybody.
 */

/** Milliseconds of such reads in one turn of the event loop: whoever reads on and on lets others have theirs. */
const MAX_TURN_MS = 1;
/** In which any machine copies. */
const BYTES_PER_MS = 1024 * 1024;
const WEIGHT = 0.1;

/** How long the disk may be waited for. */
export interface Patience {
  /** Reads took so many milliseconds longer on average than it takes to copy what is in memory: the disk is being waited for. */
  readonly slowMs: number;
  /** One that was interrupted by other work of the machine says no more than this. */
  readonly maxCountedMs: number;
  /** Until the disk is tried again: twice as long each time, up to the longest, unless it was quick in between. */
  readonly pauseMs: number;
  readonly maxPauseMs: number;
  /** The disk has answered quickly within so many: it does not sleep, nor hang. */
  readonly freshMs: number;
}

/** With blocks that were read before. */
export const WITH_KNOWN: Patience = {
  slowMs: 0.3,
  maxCountedMs: 1,
  pauseMs: 1000,
  maxPauseMs: 1000,
  freshMs: Number.POSITIVE_INFINITY,
};
/** With any other: three that wait are enough, and what has to be waited for costs more than a hop. */
export const WITH_OTHERS: Patience = {
  slowMs: 0.05,
  maxCountedMs: 0.2,
  pauseMs: 1000,
  maxPauseMs: 64_000,
  freshMs: 1000,
};
/** Reads that were quick on average: the next pause is a short one. */
const QUICK_READS = 100;
/** Milliseconds in which the thread pool reads from a disk that need not be waited for. */
const QUICK_POOL_MS = 5;

export class InlineReads {
  readonly #patience: Patience;
  readonly #now: () => number;
  #average = 0;
  #pausedUntil = 0;
  #freshUntil: number;
  #pauseMs: number;
  /** Since the last pause. */
  #reads = 0;
  /** Milliseconds in this turn. */
  #spent = 0;
  #isTurning = false;

  /** `now` is in milliseconds. */
  constructor(patience: Patience, now = () => performance.now()) {
    this.#patience = patience;
    this.#pauseMs = patience.pauseMs;
    this.#freshUntil = patience.freshMs === Number.POSITIVE_INFINITY ? patience.freshMs : 0;
    this.#now = now;
  }

  /** Runs `read`, of so many bytes; undefined when it is better not done here and now. */
  run<T>(bytes: number, read: () => T): T | undefined {
    const began = this.#now();
    if (this.#spent >= MAX_TURN_MS || began < this.#pausedUntil || began >= this.#freshUntil) return undefined;
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
    this.#count(ended - began - bytes / BYTES_PER_MS, ended);
    return result;
  }

  /** The thread pool has read, beginning at that time. */
  pooled(began: number): void {
    const now = this.#now();
    if (now - began <= QUICK_POOL_MS) this.#freshUntil = now + this.#patience.freshMs;
  }

  #count(waited: number, now: number): void {
    const { slowMs, maxCountedMs, pauseMs, maxPauseMs, freshMs } = this.#patience;
    this.#average += WEIGHT * (Math.min(Math.max(0, waited), maxCountedMs) - this.#average);
    this.#reads += 1;
    if (waited <= slowMs) this.#freshUntil = now + freshMs;
    if (this.#reads === QUICK_READS) this.#pauseMs = pauseMs;
    if (this.#average <= slowMs) return;
    this.#average = 0;
    this.#reads = 0;
    this.#pausedUntil = now + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, maxPauseMs);
  }
}
