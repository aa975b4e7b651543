/**
 * How far ahead it is worth reading: by what is on its way at the rate at which blocks come, from
 * as far as they come.
 */

/** What is read ahead of a reader that need not wait. */
export interface Usual {
  readonly bytes: number;
  /** Of small blocks. */
  readonly blocks: number;
}

/** What had come when a block was asked for. */
export interface Mark {
  readonly at: number;
  readonly usuals: number;
}

/**
 * Milliseconds from which on a block comes from afar: nearer ones are there as soon as they are
 * asked for.
 */
const FAR_MS = 5;
/** Times the usual, at most. */
const MAX_REACH = 8;
/**
 * Times what is on its way. Twice of it keeps a line busy once it is full; until then, what is on
 * its way only grows when more is asked for, and blocks come in bursts.
 */
const GAIN = 3;
/**
 * A rate counts for so many of the shortest waits, or up to twice as many: one wait that is longer
 * for once changes nothing.
 */
const WAITS_IN_PERIOD = 8;
const MIN_PERIOD_MS = 100;
/**
 * Part of the usual after which the first blocks tell a rate by themselves: they come without a
 * pause.
 */
const FIRST_PART = 1 / 2;

export class Reach {
  readonly #usual: Usual;
  readonly #now: () => number;
  /** What has come behind the first block. */
  #bytes = 0;
  #blocks = 0;
  #firstAt: number | undefined;
  #isFirstPart = true;
  /**
   * Milliseconds that the quickest block took. What waits because much was asked for at once says
   * nothing of how far it comes.
   */
  #least = Number.POSITIVE_INFINITY;
  /**
   * The usual amounts that came in a millisecond, at most, in this period and in the one before.
   */
  #rates: [now: number, before: number] = [0, 0];
  #since = 0;

  /** @param now milliseconds */
  constructor(usual: Usual, now: () => number) {
    this.#usual = usual;
    this.#now = now;
  }

  /**
   * Times the usual. 1 for what is near, for a slow line and for a slow reader: more of the same
   * would only wait there.
   */
  get times(): number {
    if (this.#least < FAR_MS || this.#least === Number.POSITIVE_INFINITY) return 1;
    const onTheWay = Math.max(...this.#rates) * this.#least;
    return Math.min(MAX_REACH, Math.max(1, GAIN * onTheWay));
  }

  /** A block is asked for. */
  mark(): Mark {
    return { at: this.#now(), usuals: this.#usuals };
  }

  /** It has come. */
  came(bytes: number, asked: Mark): void {
    const now = this.#now();
    if (this.#firstAt !== undefined) {
      this.#bytes += bytes;
      this.#blocks += 1;
    }
    this.#firstAt ??= now;
    const usuals = this.#usuals;
    this.#least = Math.min(this.#least, now - asked.at);
    if (now - this.#since > Math.max(MIN_PERIOD_MS, WAITS_IN_PERIOD * this.#least)) {
      this.#rates = [0, this.#rates[0]];
      this.#since = now;
    }
    this.#sample(usuals - asked.usuals, now - asked.at);
    if (!this.#isFirstPart || usuals < FIRST_PART) return;
    this.#isFirstPart = false;
    this.#sample(usuals, now - this.#firstAt);
  }

  /** How many times the usual has come, by bytes or by blocks. */
  get #usuals(): number {
    return Math.max(this.#bytes / this.#usual.bytes, this.#blocks / this.#usual.blocks);
  }

  #sample(usuals: number, milliseconds: number): void {
    this.#rates[0] = Math.max(this.#rates[0], usuals / Math.max(1, milliseconds));
  }
}
