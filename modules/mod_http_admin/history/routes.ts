/** An hour of what each route did, in samples. */
import type { RouteCounts } from "../../../core/http/index.ts";
import { add, emptyTally, REQUESTS, type Tally, tallyOf, WIDTH } from "./tally.ts";

/** Samples of an hour. */
export const SAMPLES = 360;
/** Routes with rows of their own: 27 KB each. All others share one. */
export const MAX_ROUTES = 128;
/** The module and the route of the row that all others share. */
export const OTHER = "other";

/** A row for the next instance of this module. */
export interface SavedRow {
  readonly module: string;
  readonly route: string;
  readonly samples: Float32Array;
  readonly hour: Tally;
  readonly idle: number;
}

/** One route: its samples lie in a ring, at the places that the history tells. */
export class RouteRow {
  readonly module: string;
  readonly route: string;
  /** The sum of all samples: to be read alone. */
  readonly hour: Tally;
  readonly #samples: Float32Array;
  /** Samples since the last one in which anything was counted. */
  #idle: number;

  constructor(module: string, route: string, { samples, hour, idle }: Partial<SavedRow> = {}) {
    this.module = module;
    this.route = route;
    this.hour = hour ?? emptyTally();
    this.#samples = samples ?? new Float32Array(SAMPLES * WIDTH);
    this.#idle = idle ?? 0;
  }

  save(): SavedRow {
    return { module: this.module, route: this.route, samples: this.#samples, hour: this.hour, idle: this.#idle };
  }

  /** Its samples are all empty. */
  get isIdle(): boolean {
    return this.#idle >= SAMPLES;
  }

  put(place: number, tally: Tally): void {
    const sample = this.sample(place);
    add(this.hour, sample, -1);
    sample.set(tally);
    // What is stored is less exact, and is what is taken away again.
    add(this.hour, sample);
    this.#idle = tally[REQUESTS] === 0 ? this.#idle + 1 : 0;
  }

  sample(place: number): Float32Array {
    return this.#samples.subarray(place * WIDTH, (place + 1) * WIDTH);
  }
}

export class RouteRows {
  readonly #rows = new Map<string, RouteRow>();
  /** What each route had counted at the last sample. Those of modules that were unloaded go. */
  #last = new Map<RouteCounts, Tally>();

  get rows(): IterableIterator<RouteRow> {
    return this.#rows.values();
  }

  restore(rows: readonly SavedRow[]): void {
    for (const row of rows) this.#rows.set(keyOf(row.module, row.route), new RouteRow(row.module, row.route, row));
  }

  find(module: string, route: string): RouteRow | undefined {
    return this.#rows.get(keyOf(module, route));
  }

  /** What was counted since the last sample, by row. */
  sinceLast(counts: Iterable<RouteCounts>): Map<RouteRow, Tally> {
    const found = new Map<RouteRow, Tally>();
    for (const each of counts) {
      const tally = tallyOf(each);
      const last = this.#last.get(each);
      if (last !== undefined) add(tally, last, -1);
      if (tally[REQUESTS] === 0) continue;
      const row = this.#rowOf(each.module, each.route);
      const sum = found.get(row);
      if (sum === undefined) found.set(row, tally);
      else add(sum, tally);
    }
    return found;
  }

  /** Puts what was counted since the last sample at this place of the ring. */
  sample(place: number, counts: Iterable<RouteCounts>): void {
    const all = [...counts];
    const found = this.sinceLast(all);
    this.skip(all);
    for (const row of this.#rows.values()) row.put(place, found.get(row) ?? emptyTally());
  }

  /** What was counted until now is in no sample. */
  skip(counts: Iterable<RouteCounts>): void {
    this.#last = new Map([...counts].map((each) => [each, tallyOf(each)]));
  }

  #rowOf(module: string, route: string): RouteRow {
    const key = keyOf(module, route);
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    if (this.#rows.size >= MAX_ROUTES && route !== OTHER) {
      const idle = this.#rows.entries().find(([, row]) => row.isIdle);
      if (idle === undefined) return this.#rowOf(OTHER, OTHER);
      this.#rows.delete(idle[0]);
    }
    const row = new RouteRow(module, route);
    this.#rows.set(key, row);
    return row;
  }
}

function keyOf(module: string, route: string): string {
  return `${module} ${route}`;
}
