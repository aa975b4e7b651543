/**
 * Divides the key space into regions, and stores when each was last announced. The data survives
 * restarts, and hosts of a shared store share it. The time determines which regions are due: each
 * region has its own offset in the interval.
 */
import type { MetadataStore } from "../../../storage/metadata/store.ts";
import { WriteBehind } from "../../../storage/metadata/write_behind.ts";
import { type HasKadId, type Prefix, positionOf, prefixesBelow, prefixOf, siblingOf } from "./keyspace.ts";

/** Milliseconds until a change is written; a crash loses the announcements of that period. */
const WRITE_AFTER_MS = 1000;

/** Number of bits of a key that suffice to find its region; no region has more. */
const MAX_BITS = 32;
const isRegion = /^[01]{0,32}$/;

export interface Due {
  readonly prefix: Prefix;
  /** When the region was due, in milliseconds since 1970. */
  readonly at: number;
}

/** The schedule of announcements: each region once per interval, in milliseconds. */
export interface Cycle {
  /** When the first cycle began, in milliseconds since 1970. */
  readonly began: number;
  readonly interval: number;
}

/** Returns when the cycle at that time began. */
export const cycleAt = ({ began, interval }: Cycle, now: number): number =>
  began + Math.floor((now - began) / interval) * interval;

/** Returns the latest time up to `now` at which the region was due. */
function momentBefore(cycle: Cycle, prefix: Prefix, now: number): number {
  const offset = positionOf(prefix) * cycle.interval;
  return offset + cycleAt(cycle, now - offset);
}

export class Regions {
  readonly #store: WriteBehind;
  /**
   * When each region was announced; 0 for never. No prefix extends another one, and together they
   * cover the key space.
   */
  readonly #announced = new Map<Prefix, number>([["", 0]]);

  /** @param name name of the DHT, which has its own regions */
  constructor(metadata: MetadataStore, name: string) {
    this.#store = new WriteBehind(metadata, `routing/sweep/regions/${name}/`, { delayMs: WRITE_AFTER_MS });
  }

  /** Loads the stored regions. */
  async open(): Promise<void> {
    const stored: (readonly [Prefix, number])[] = [];
    for await (const [name, bytes] of this.#store.range("")) {
      const prefix = name.slice(PREFIX_MARK.length);
      if (isRegion.test(prefix)) stored.push([prefix, Number(Buffer.from(bytes).toString())]);
    }
    for (const [prefix, at] of stored.toSorted((a, b) => a[1] - b[1])) this.#put(prefix, at);
  }

  /** Forgets when regions were announced, so that all are due. */
  forget(): void {
    for (const prefix of this.prefixes()) this.#write(prefix, undefined);
    this.#announced.clear();
    this.#announced.set("", 0);
  }

  prefixes(): readonly Prefix[] {
    return [...this.#announced.keys()];
  }

  /** Returns when the prefix was last announced, or the region that contains it. 0 for never. */
  announced(prefix: Prefix): number {
    return this.#announced.get(this.regionContaining(prefix) ?? prefix) ?? 0;
  }

  /**
   * Returns the region that contains a prefix; undefined if the prefix is divided into several
   * regions.
   */
  regionContaining(prefix: Prefix): Prefix | undefined {
    for (let length = prefix.length; length >= 0; length -= 1) {
      const shorter = prefix.slice(0, length);
      if (this.#announced.has(shorter)) return shorter;
    }
    return undefined;
  }

  /** Groups keys by the region that contains them. */
  grouped<K extends HasKadId>(keys: readonly K[]): Map<Prefix, K[]> {
    return Map.groupBy(keys, ({ kadId }) => this.regionContaining(prefixOf(kadId, MAX_BITS)) as Prefix);
  }

  /** Merges everything below the prefix into one region, with the time of its announcement. */
  set(prefix: Prefix, at: number): void {
    this.#put(prefix, at);
    this.#write(prefix, at);
  }

  /** Records that there was nothing to announce; after a restart the region is checked again. */
  skip(prefix: Prefix, at: number): void {
    this.#announced.set(prefix, at);
  }

  /** Makes the regions that contain the prefix, or are contained in it, due immediately. */
  bringForward(prefix: Prefix): void {
    const regionContaining = this.regionContaining(prefix);
    const late =
      regionContaining === undefined ? this.prefixes().filter((each) => each.startsWith(prefix)) : [regionContaining];
    for (const each of late) this.set(each, 0);
  }

  /** Divides regions whose prefix is shorter than that length. */
  cut(length: number): void {
    for (const [prefix, at] of [...this.#announced]) {
      if (prefix.length >= length) continue;
      this.#announced.delete(prefix);
      this.#write(prefix, undefined);
      for (const part of prefixesBelow(prefix, length)) {
        this.#announced.set(part, at);
        if (at > 0) this.#write(part, at);
      }
    }
  }

  /** Yields the regions that were not announced since they became due. */
  *due(cycle: Cycle, now: number): Generator<Due, void, undefined> {
    for (const [prefix, announced] of this.#announced) {
      const at = momentBefore(cycle, prefix, now);
      if (announced < at) yield { prefix, at };
    }
  }

  /** Returns the region that becomes due next. */
  next(cycle: Cycle, now: number, isWanted: (prefix: Prefix) => boolean): Due | undefined {
    let next: Due | undefined;
    for (const prefix of this.#announced.keys()) {
      const at = momentBefore(cycle, prefix, now) + cycle.interval;
      if ((next === undefined || at < next.at) && isWanted(prefix)) next = { prefix, at };
    }
    return next;
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #put(prefix: Prefix, at: number): void {
    const regionContaining = this.regionContaining(prefix);
    if (regionContaining === undefined) for (const other of this.#below(prefix)) this.#remove(other);
    if (regionContaining !== undefined && regionContaining !== prefix) {
      const before = this.#announced.get(regionContaining) as number;
      this.#remove(regionContaining);
      for (let length = prefix.length; length > regionContaining.length; length -= 1) {
        const sibling = siblingOf(prefix.slice(0, length));
        this.#announced.set(sibling, before);
        if (before > 0) this.#write(sibling, before);
      }
    }
    this.#announced.set(prefix, at);
  }

  /**
   * Returns the regions into which a prefix is divided. Since the regions cover the key space,
   * descending through both halves finds each of them.
   */
  #below(prefix: Prefix): Prefix[] {
    return ["0", "1"].flatMap((bit) => {
      const half = prefix + bit;
      return this.#announced.has(half) ? [half] : this.#below(half);
    });
  }

  #remove(prefix: Prefix): void {
    this.#announced.delete(prefix);
    this.#write(prefix, undefined);
  }

  #write(prefix: Prefix, at: number | undefined): void {
    this.#store.set(PREFIX_MARK + prefix, at === undefined ? undefined : Buffer.from(String(at)));
  }
}

/** Put before a stored prefix, because the prefix may be empty. */
const PREFIX_MARK = "p";
