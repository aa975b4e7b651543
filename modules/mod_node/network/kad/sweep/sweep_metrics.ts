/** Statistics of the sweep since the start, for `provide/stat`. */
import type { WorkKind } from "./workers.ts";

/** Numbers of regions and keys that are in progress, or were announced. */
export interface Counted {
  readonly regions: number;
  readonly keys: number;
}

/** Averages are taken over this many of the latest regions. */
const MAX_REMEMBERED = 1024;

/** Statistics of one announced region. */
interface Done {
  readonly keys: number;
  readonly milliseconds: number;
}

/** The latest values, at most `MAX_REMEMBERED`, for sums and averages. */
class Recent<T> {
  readonly #items: T[] = [];

  add(item: T): void {
    this.#items.push(item);
    if (this.#items.length > MAX_REMEMBERED) this.#items.shift();
  }

  sum(of: (item: T) => number): number {
    return this.#items.reduce((sum, item) => sum + of(item), 0);
  }

  /** Returns the mean of the values that `of` selects; undefined while there are none. */
  mean(of: (item: T) => number): number | undefined {
    return this.#items.length === 0 ? undefined : this.sum(of) / this.#items.length;
  }
}

export class SweepMetrics {
  readonly #now: () => number;
  readonly ongoing: Readonly<Record<WorkKind, { regions: number; keys: number }>> = {
    periodic: { regions: 0, keys: 0 },
    burst: { regions: 0, keys: 0 },
  };
  readonly #done: Readonly<Record<WorkKind, Recent<Done>>> = { periodic: new Recent(), burst: new Recent() };
  readonly #sizes = new Recent<number>();
  readonly #reached = new Recent<{ readonly reached: number; readonly requested: number }>();
  /** Number of sent provider records: several per key. */
  records = 0;
  /**
   * Number of keys that at least one peer accepted, and of keys that none accepted; counted at each
   * announcement.
   */
  keys = 0;
  failed = 0;
  /** Total milliseconds that announcing regions took. */
  milliseconds = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Counts the work as ongoing while it runs, and records its outcome. Resolves to the number of
   * announced keys.
   */
  async measure(kind: WorkKind, keys: number, work: () => Promise<number>): Promise<number> {
    const ongoing = this.ongoing[kind];
    ongoing.regions += 1;
    ongoing.keys += keys;
    const began = this.#now();
    try {
      const announced = await work();
      this.#done[kind].add({ keys: announced, milliseconds: this.#now() - began });
      return announced;
    } finally {
      ongoing.regions -= 1;
      ongoing.keys -= keys;
      this.milliseconds += this.#now() - began;
    }
  }

  explored(peers: readonly number[]): void {
    for (const count of peers) this.#sizes.add(count);
  }

  reached(reached: number, requested: number): void {
    this.#reached.add({ reached, requested });
  }

  sent(records: number): void {
    this.records += records;
  }

  keysAnnounced(keys: number, failed: number): void {
    this.keys += keys;
    this.failed += failed;
  }

  /**
   * Returns the average number of keys that a worker announces per minute; undefined before the
   * first region.
   */
  perMinute(kind: WorkKind): number | undefined {
    const milliseconds = this.#done[kind].sum((each) => each.milliseconds);
    return milliseconds === 0 ? undefined : (this.#done[kind].sum((each) => each.keys) * 60_000) / milliseconds;
  }

  /** Averages of scheduled regions; undefined before the first one. */
  get periodic(): { readonly keys: number; readonly milliseconds: number } | undefined {
    const keys = this.#done.periodic.mean((each) => each.keys);
    const milliseconds = this.#done.periodic.mean((each) => each.milliseconds);
    return keys === undefined || milliseconds === undefined ? undefined : { keys, milliseconds };
  }

  /** Average number of peers in a region; undefined before the first one. */
  get regionSize(): number | undefined {
    return this.#sizes.mean((count) => count);
  }

  /** Number of peers that were asked to accept records, and of those that did. */
  get peers(): { readonly requested: number; readonly reached: number } {
    return {
      requested: this.#reached.sum(({ requested }) => requested),
      reached: this.#reached.sum(({ reached }) => reached),
    };
  }
}
