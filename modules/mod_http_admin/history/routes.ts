/** One hour of metrics of each route, as samples. */
import type { RouteCounts } from "../../../core/http/index.ts";
import { add, emptyTally, REQUESTS, type Tally, tallyOf, WIDTH } from "./tally.ts";

/** Number of samples in an hour. */
export const SAMPLES = 360;
/** Number of routes with their own rows of 27 KB. All others share one row. */
export const MAX_ROUTES = 128;
/** The module and route of the shared row. */
export const OTHER = "other";

/** A row as it is saved for the next instance of this module. */
export interface SavedRow {
  readonly module: string;
  readonly route: string;
  readonly samples: Float32Array;
  readonly hour: Tally;
  readonly idle: number;
}

/** The samples of one route in a ring. The history chooses the slots. */
export class RouteRow {
  readonly module: string;
  readonly route: string;
  /** The sum of all samples. Callers only read it. */
  readonly hour: Tally;
  readonly #samples: Float32Array;
  /** Number of consecutive latest samples without a request. */
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

  /** Whether all samples are empty. */
  get isIdle(): boolean {
    return this.#idle >= SAMPLES;
  }

  put(slot: number, tally: Tally): void {
    const sample = this.sample(slot);
    add(this.hour, sample, -1);
    sample.set(tally);
    // The stored sample has less precision. Adding exactly that value lets a later subtraction
    // cancel it.
    add(this.hour, sample);
    this.#idle = tally[REQUESTS] === 0 ? this.#idle + 1 : 0;
  }

  sample(slot: number): Float32Array {
    return this.#samples.subarray(slot * WIDTH, (slot + 1) * WIDTH);
  }
}

export class RouteRows {
  readonly #rows = new Map<string, RouteRow>();
  /** The counters of each route at the last sample. Routes of unloaded modules are dropped. */
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

  /** Returns what was counted since the last sample, by row. */
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

  /** Stores what was counted since the last sample in this slot of the ring. */
  sample(slot: number, counts: Iterable<RouteCounts>): void {
    const all = [...counts];
    const found = this.sinceLast(all);
    this.skip(all);
    for (const row of this.#rows.values()) row.put(slot, found.get(row) ?? emptyTally());
  }

  /** Discards what was counted until now, so that it is in no sample. */
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
