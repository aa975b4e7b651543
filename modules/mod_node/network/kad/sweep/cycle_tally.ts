/** Counts what was announced in each cycle. */

/** Totals of a cycle, or of one call. */
export interface SweptKeys {
  readonly provided: number;
  readonly regions: number;
  readonly durationMs: number;
}

const nothing: SweptKeys = { provided: 0, regions: 0, durationMs: 0 };

export class CycleTally {
  /** Totals of the last complete cycle, or of a later call. */
  last = nothing;
  #began = 0;
  #current = nothing;

  /** @param began start of the cycle of the announcement, in milliseconds since 1970 */
  add(began: number, swept: SweptKeys): void {
    if (began !== this.#began) {
      if (this.#began !== 0) this.last = this.#current;
      this.#began = began;
      this.#current = nothing;
    }
    const { provided, regions, durationMs } = this.#current;
    this.#current = {
      provided: provided + swept.provided,
      regions: regions + swept.regions,
      durationMs: durationMs + swept.durationMs,
    };
  }
}
