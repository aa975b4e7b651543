/** What was announced, cycle by cycle. */

/** What was announced in a cycle, or by one call. */
export interface SweptKeys {
  readonly provided: number;
  readonly regions: number;
  readonly durationMs: number;
}

const nothing: SweptKeys = { provided: 0, regions: 0, durationMs: 0 };

export class CycleTally {
  /** The last whole cycle, or a call since. */
  last = nothing;
  #began = 0;
  #current = nothing;

  /** @param began when the cycle did in which it was announced, in milliseconds since 1970 */
  add(began: number, swept: SweptKeys): void {
    if (began !== this.#began) {
      if (this.#began !== 0) this.last = this.#current;
      [this.#began, this.#current] = [began, nothing];
    }
    const { provided, regions, durationMs } = this.#current;
    this.#current = {
      provided: provided + swept.provided,
      regions: regions + swept.regions,
      durationMs: durationMs + swept.durationMs,
    };
  }
}
