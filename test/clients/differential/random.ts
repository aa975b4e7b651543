/** Random choices that are the same for the same seed. */
import { seeded } from "#test/support/seeded.ts";

export class Random {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seeded(seed);
  }

  /** A whole number from `from` to `to`, both included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.#next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.int(0, values.length - 1)] as T;
  }

  /** Each value with this probability, without repetitions. */
  some<T>(probability: number, values: readonly T[]): T[] {
    return [...new Set(values.filter(() => this.chance(probability)))];
  }
}
