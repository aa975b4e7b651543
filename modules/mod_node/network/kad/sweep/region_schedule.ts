/**
 * Decides when each region is announced next. Regions that are due are announced, except while they
 * are in progress or have just failed.
 */
import type { Clock } from "./clock.ts";
import type { Prefix } from "./keyspace.ts";
import type { Cycle, Due, Regions } from "./regions.ts";

/**
 * Milliseconds that a region may be late before the node reports that it falls behind, as in Kubo.
 */
export const MAX_DELAY_MS = 3600 * 1000;
/** Milliseconds until a failed region is tried again. */
const RETRY_AFTER_MS = 5 * 60_000;

export class RegionSchedule {
  readonly #clock: Clock;
  readonly #hasKeys: (prefix: Prefix) => boolean;
  cycle: Cycle = { began: 0, interval: 0 };
  /** The regions of the DHT that was last used. */
  regions: Regions | undefined;
  /** Time in milliseconds since 1970 before which no region counts as late. */
  notBefore = 0;
  readonly #busy = new Set<Prefix>();
  /** Times at which failed regions may be tried again. */
  readonly #retries = new Map<Prefix, number>();

  constructor(clock: Clock, hasKeys: (prefix: Prefix) => boolean) {
    this.#clock = clock;
    this.#hasKeys = hasKeys;
  }

  begin(prefix: Prefix): void {
    this.#busy.add(prefix);
  }

  end(prefix: Prefix, outcome: "announced" | "failed"): void {
    this.#busy.delete(prefix);
    if (outcome === "announced") this.#retries.delete(prefix);
    else this.#retries.set(prefix, this.#clock.now() + RETRY_AFTER_MS);
  }

  /** Number of regions that are waiting for another try. */
  get retries(): number {
    return this.#retries.size;
  }

  /** Returns the region that has been due for longest. Regions without keys are skipped. */
  first(regions: Regions): Due | undefined {
    const now = this.#clock.now();
    let first: Due | undefined;
    for (const due of [...regions.due(this.cycle, now)]) {
      if (!this.#hasKeys(due.prefix)) regions.skip(due.prefix, now);
      else if ((first === undefined || due.at < first.at) && !this.#isPaused(due.prefix, now)) first = due;
    }
    return first;
  }

  #isPaused(prefix: Prefix, now: number): boolean {
    return this.#isBusy(prefix) || (this.#retries.get(prefix) ?? 0) > now;
  }

  #isBusy(prefix: Prefix): boolean {
    for (const busy of this.#busy) if (busy.startsWith(prefix) || prefix.startsWith(busy)) return true;
    return false;
  }

  /** Returns the next region and its due time, which may have passed. */
  next(): Due | undefined {
    const { regions, cycle } = this;
    if (regions === undefined || cycle.interval <= 0) return undefined;
    const now = this.#clock.now();
    let first: Due | undefined;
    for (const due of regions.due(cycle, now)) {
      if (!this.#hasKeys(due.prefix) || this.#isBusy(due.prefix)) continue;
      const at = Math.max(due.at, this.#retries.get(due.prefix) ?? 0);
      if (first === undefined || at < first.at) first = { prefix: due.prefix, at };
    }
    return first ?? regions.next(cycle, now, this.#hasKeys);
  }

  /**
   * Returns by how many milliseconds the most overdue region is late, counting only the time with
   * peers.
   */
  behindMs(onlineSince: number | undefined): number {
    const { regions, cycle } = this;
    if (regions === undefined || cycle.interval <= 0 || onlineSince === undefined) return 0;
    const now = this.#clock.now();
    let behind = 0;
    for (const { prefix, at } of regions.due(cycle, now)) {
      if (this.#hasKeys(prefix)) behind = Math.max(behind, now - Math.max(at, onlineSince, this.notBefore));
    }
    return behind;
  }

  /** Whether all regions with keys were announced in the last interval. */
  isCovered(now: number): boolean {
    const since = now - this.cycle.interval;
    const { wanted, regions } = this;
    return wanted.length > 0 && wanted.every((prefix) => (regions?.announced(prefix) ?? 0) >= since);
  }

  /** Regions that have keys. */
  get wanted(): readonly Prefix[] {
    return this.regions?.prefixes().filter(this.#hasKeys) ?? [];
  }
}
