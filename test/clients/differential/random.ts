/** Random choices; the same seed gives the same choices. */
import { seeded } from "#test/support/seeded.ts";

export class CaseRandom {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seeded(seed);
  }

  /** Returns an integer from `from` to `to`, inclusive. */
  int(from: number, to: number): number {
    return from + Math.floor(this.#next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.int(0, values.length - 1)] as T;
  }

  /** Chooses each value with this probability, and none twice. */
  some<T>(probability: number, values: readonly T[]): T[] {
    return [...new Set(values.filter(() => this.chance(probability)))];
  }
}
