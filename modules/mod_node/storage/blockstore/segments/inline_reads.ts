/**
 * Decides when to read from the disk on the main thread. Going through the thread pool costs ten
 * times as much as copying a block that the system has cached. Blocks that were read before are
 * usually cached, and blocks that were written or read by others often are. But waiting for a disk
 * blocks the event loop.
 */

/**
 * Maximum milliseconds of such reads per tick, so that a sequential reader does not block others.
 */
const MAX_TURN_MS = 1;
/** A rate at which any machine copies memory. */
const BYTES_PER_MS = 1024 * 1024;
const WEIGHT = 0.1;

/** Limits for waiting for the disk. */
export interface Patience {
  /**
   * Average milliseconds of a read beyond the time for copying cached data, above which the disk is
   * considered slow.
   */
  readonly slowMs: number;
  /**
   * A single read counts at most this much, because other work of the machine may have interrupted
   * it.
   */
  readonly maxCountedMs: number;
  /**
   * Milliseconds until the disk is tried again. The pause doubles each time up to the maximum,
   * unless the disk was fast in between.
   */
  readonly pauseMs: number;
  readonly maxPauseMs: number;
  /**
   * Milliseconds after a fast response of the disk during which it is assumed not to sleep or hang.
   */
  readonly freshMs: number;
}

/** Limits for blocks that were read before. */
export const WITH_KNOWN: Patience = {
  slowMs: 0.3,
  maxCountedMs: 1,
  pauseMs: 1000,
  maxPauseMs: 1000,
  freshMs: Number.POSITIVE_INFINITY,
};
/**
 * Limits for other blocks. They are lower: three slow reads are enough, because waiting costs more
 * than the thread pool.
 */
export const WITH_OTHERS: Patience = {
  slowMs: 0.05,
  maxCountedMs: 0.2,
  pauseMs: 1000,
  maxPauseMs: 64_000,
  freshMs: 1000,
};
/** After this many reads that were fast on average, the next pause is a short one. */
const QUICK_READS = 100;
/**
 * A read in the thread pool that takes at most this many milliseconds did not wait for the disk.
 */
const QUICK_POOL_MS = 5;

export class InlineReads {
  readonly #patience: Patience;
  readonly #now: () => number;
  #average = 0;
  #pausedUntil = 0;
  #freshUntil: number;
  #pauseMs: number;
  /** Number of reads since the last pause. */
  #reads = 0;
  /** Milliseconds of reads in this tick. */
  #spent = 0;
  #isTurning = false;

  /** `now` returns milliseconds. */
  constructor(patience: Patience, now = () => performance.now()) {
    this.#patience = patience;
    this.#pauseMs = patience.pauseMs;
    this.#freshUntil = patience.freshMs === Number.POSITIVE_INFINITY ? patience.freshMs : 0;
    this.#now = now;
  }

  /** Runs `read` for `bytes` bytes; returns undefined when the thread pool should read instead. */
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

  /** Records a read in the thread pool that started at `began`. */
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
