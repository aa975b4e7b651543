/** When each region is announced next: those whose moment has passed, except while they are being announced or have just failed. */
import type { Clock } from "./clock.ts";
import type { Prefix } from "./keyspace.ts";
import type { Cycle, Due, Regions } from "./regions.ts";

/** Milliseconds that a region may be late before the node says that it falls behind, as in Kubo. */
export const MAX_DELAY_MS = 3600 * 1000;
/** Milliseconds until a region that failed is tried again. */
const RETRY_AFTER_MS = 5 * 60_000;

export class RegionSchedule {
  readonly #clock: Clock;
  readonly #hasKeys: (prefix: Prefix) => boolean;
  cycle: Cycle = { began: 0, interval: 0 };
  /** Those of the DHT that was announced to last. */
  regions: Regions | undefined;
  /** Milliseconds since 1970 before which no region is late. */
  notBefore = 0;
  readonly #busy = new Set<Prefix>();
  /** When regions that failed may be tried again. */
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

  /** Regions that wait to be tried again. */
  get retries(): number {
    return this.#retries.size;
  }

  /** The region that waits longest. Those without keys have had their turn. */
  first(regions: Regions): Due | undefined {
    const now = this.#clock.now();
    let first: Due | undefined;
    for (const due of [...regions.due(this.cycle, now)]) {
      if (!this.#hasKeys(due.prefix)) regions.skip(due.prefix, now);
      else if ((first === undefined || due.at < first.at) && !this.#isHeld(due.prefix, now)) first = due;
    }
    return first;
  }

  #isHeld(prefix: Prefix, now: number): boolean {
    return this.#isBusy(prefix) || (this.#retries.get(prefix) ?? 0) > now;
  }

  #isBusy(prefix: Prefix): boolean {
    for (const busy of this.#busy) if (busy.startsWith(prefix) || prefix.startsWith(busy)) return true;
    return false;
  }

  /** The region that is next, and its moment, which may have passed. */
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

  /** Milliseconds by which the region that waits longest is late, where there have been peers since then. */
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

  /** Whether all regions that have keys were announced in the last interval. */
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
