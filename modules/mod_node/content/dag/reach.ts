/**
 * Calculates how far ahead it is worth reading: the rate at which blocks arrive, times the time
 * that one of them takes.
 */

/** The base amount: how much is read ahead of a reader of nearby blocks. */
export interface ReadaheadAmount {
  readonly bytes: number;
  /** Number of blocks, if they are small. */
  readonly blocks: number;
}

/** The state when a block was requested. */
export interface Mark {
  readonly at: number;
  readonly multiples: number;
}

/**
 * A block that takes at least this many milliseconds comes from a distant peer. Blocks of nearby
 * peers arrive faster.
 */
const FAR_MS = 5;
/** Maximum multiple of the base amount. */
const MAX_REACH = 8;
/**
 * How many times the amount in transit is read ahead. Twice that amount keeps a full line busy.
 * Until the line is full, the amount in transit only grows when more is requested, and blocks
 * arrive in bursts.
 */
const GAIN = 3;
/**
 * A rate is used for this many of the shortest waits, and for at most twice as long. So one longer
 * wait has no effect.
 */
const WAITS_IN_PERIOD = 8;
const MIN_PERIOD_MS = 100;
/**
 * When this part of the base amount has arrived, the rate since the first block counts, too: the
 * first blocks arrive without a pause.
 */
const FIRST_PART = 1 / 2;

export class Reach {
  readonly #base: ReadaheadAmount;
  readonly #now: () => number;
  /** Bytes and blocks that arrived after the first block. */
  #bytes = 0;
  #blocks = 0;
  #firstAt: number | undefined;
  #isFirstPart = true;
  /**
   * Milliseconds that the quickest block took. Longer times do not show the distance of a peer: a
   * block also waits for others that were requested with it.
   */
  #least = Number.POSITIVE_INFINITY;
  /**
   * Multiples of the base amount that arrived per millisecond: the maximum of this period and of
   * the previous one.
   */
  #rates: [now: number, before: number] = [0, 0];
  #since = 0;

  /** @param now returns milliseconds */
  constructor(base: ReadaheadAmount, now: () => number) {
    this.#base = base;
    this.#now = now;
  }

  /**
   * Multiple of the base amount that is worth reading ahead. It is 1 for nearby peers, for a slow
   * line and for a slow reader: a larger amount would only wait there.
   */
  get times(): number {
    if (this.#least < FAR_MS || this.#least === Number.POSITIVE_INFINITY) return 1;
    const onTheWay = Math.max(...this.#rates) * this.#least;
    return Math.min(MAX_REACH, Math.max(1, GAIN * onTheWay));
  }

  /** Called when a block is requested. */
  mark(): Mark {
    return { at: this.#now(), multiples: this.#multiples };
  }

  /** Called when the block has arrived. */
  received(bytes: number, mark: Mark): void {
    const now = this.#now();
    if (this.#firstAt !== undefined) {
      this.#bytes += bytes;
      this.#blocks += 1;
    }
    this.#firstAt ??= now;
    const multiples = this.#multiples;
    this.#least = Math.min(this.#least, now - mark.at);
    if (now - this.#since > Math.max(MIN_PERIOD_MS, WAITS_IN_PERIOD * this.#least)) {
      this.#rates = [0, this.#rates[0]];
      this.#since = now;
    }
    this.#sample(multiples - mark.multiples, now - mark.at);
    if (!this.#isFirstPart || multiples < FIRST_PART) return;
    this.#isFirstPart = false;
    this.#sample(multiples, now - this.#firstAt);
  }

  /** How many times the base amount has arrived, in bytes or in blocks. */
  get #multiples(): number {
    return Math.max(this.#bytes / this.#base.bytes, this.#blocks / this.#base.blocks);
  }

  #sample(multiples: number, milliseconds: number): void {
    this.#rates[0] = Math.max(this.#rates[0], multiples / Math.max(1, milliseconds));
  }
}
