/** Holding somebody back who spends too much. */
import { setTimeout as pass } from "node:timers/promises";

export interface TokenBucketLimits {
  /** What may be spent at once. */
  readonly burst: number;
  readonly perSecond: number;
}

export class TokenBucket {
  readonly #limits: TokenBucketLimits;
  #left: number;
  #at = performance.now();

  constructor(limits: TokenBucketLimits) {
    this.#limits = limits;
    this.#left = limits.burst;
  }

  /** Resolves when there was enough; at once until the burst is spent. */
  take(amount: number): Promise<void> | undefined {
    const { burst, perSecond } = this.#limits;
    const now = performance.now();
    this.#left = Math.min(burst, this.#left + ((now - this.#at) * perSecond) / 1000) - amount;
    this.#at = now;
    return this.#left >= 0 ? undefined : pass((-this.#left * 1000) / perSecond, undefined, { ref: false });
  }
}
