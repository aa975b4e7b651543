/** What the sweep has done since the start, as `provide/stat` shows it. */
import type { WorkKind } from "./workers.ts";

/** Regions and keys that are under way, or were announced. */
export interface Counted {
  readonly regions: number;
  readonly keys: number;
}

/** Averages are taken over this many of the latest regions. */
const MAX_REMEMBERED = 1024;

/** One region that was announced. */
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

  /** The average of what `of` gives; undefined while there are no values. */
  mean(of: (item: T) => number): number | undefined {
    return this.#items.length === 0 ? undefined : this.sum(of) / this.#items.length;
  }
}

export class Figures {
  readonly #now: () => number;
  readonly ongoing: Readonly<Record<WorkKind, { regions: number; keys: number }>> = {
    periodic: { regions: 0, keys: 0 },
    burst: { regions: 0, keys: 0 },
  };
  readonly #done: Readonly<Record<WorkKind, Recent<Done>>> = { periodic: new Recent(), burst: new Recent() };
  readonly #sizes = new Recent<number>();
  readonly #reached = new Recent<{ readonly reached: number; readonly asked: number }>();
  /** Provider records that were sent: several of each key. */
  records = 0;
  /** Keys that at least one peer was given, and those that none was; counted each time. */
  keys = 0;
  failed = 0;
  /** Milliseconds that regions took together. */
  milliseconds = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes the work while it runs, and what came of it. Resolves with the keys that were announced. */
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

  reached(reached: number, asked: number): void {
    this.#reached.add({ reached, asked });
  }

  sent(records: number): void {
    this.records += records;
  }

  keysAnnounced(keys: number, failed: number): void {
    this.keys += keys;
    this.failed += failed;
  }

  /** Keys that a worker announces in a minute, on average; undefined before the first. */
  perMinute(kind: WorkKind): number | undefined {
    const milliseconds = this.#done[kind].sum((each) => each.milliseconds);
    return milliseconds === 0 ? undefined : (this.#done[kind].sum((each) => each.keys) * 60_000) / milliseconds;
  }

  /** Of regions whose turn it was, on average; undefined before the first. */
  get periodic(): { readonly keys: number; readonly milliseconds: number } | undefined {
    const keys = this.#done.periodic.mean((each) => each.keys);
    const milliseconds = this.#done.periodic.mean((each) => each.milliseconds);
    return keys === undefined || milliseconds === undefined ? undefined : { keys, milliseconds };
  }

  /** Peers of a region; undefined before the first. */
  get regionSize(): number | undefined {
    return this.#sizes.mean((count) => count);
  }

  /** Peers that were asked to take records, and those that did. */
  get peers(): { readonly asked: number; readonly reached: number } {
    return { asked: this.#reached.sum(({ asked }) => asked), reached: this.#reached.sum(({ reached }) => reached) };
  }
}
