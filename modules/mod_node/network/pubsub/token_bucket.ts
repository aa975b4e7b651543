/** Limits a rate: allows a burst at once, then a fixed amount per second. */
import { setTimeout as delay } from "node:timers/promises";

export interface TokenBucketLimits {
  /** Amount that may be taken at once. */
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

  /** Resolves when the amount is available; returns undefined if it is available immediately. */
  take(amount: number): Promise<void> | undefined {
    const { burst, perSecond } = this.#limits;
    const now = performance.now();
    this.#left = Math.min(burst, this.#left + ((now - this.#at) * perSecond) / 1000) - amount;
    this.#at = now;
    return this.#left >= 0 ? undefined : delay((-this.#left * 1000) / perSecond, undefined, { ref: false });
  }
}
