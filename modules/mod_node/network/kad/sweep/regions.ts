/**
 * The regions into which the key space is cut, and when each was announced last. It survives restarts, and hosts of a shared store
 * have it in common. What is due follows from the time: each region has its moment in the interval.
 */
import type { MetadataStore } from "../../../storage/metadata/store.ts";
import { WriteBehind } from "../../../storage/metadata/write_behind.ts";
import { type Placed, type Prefix, positionOf, prefixesBelow, prefixOf, siblingOf } from "./keyspace.ts";

/** Milliseconds until a change is written: a crash loses that regions were announced within them. */
const WRITE_AFTER_MS = 1000;

/** Bits of a key by which its region is found: more than any has. */
const MOST_BITS = 32;
const isRegion = /^[01]{0,32}$/;

export interface Due {
  readonly prefix: Prefix;
  /** When it was to be announced, in milliseconds since 1970. */
  readonly at: number;
}

/** When regions are announced: each once in an interval, both in milliseconds. */
export interface Cycle {
  /** When the first one began, since 1970. */
  readonly began: number;
  readonly interval: number;
}

/** When the cycle of that moment began. */
export const cycleAt = ({ began, interval }: Cycle, now: number): number =>
  began + Math.floor((now - began) / interval) * interval;

/** The latest moment at which the region is due that is not after `now`. */
function momentBefore(cycle: Cycle, prefix: Prefix, now: number): number {
  const offset = positionOf(prefix) * cycle.interval;
  return offset + cycleAt(cycle, now - offset);
}

export class Regions {
  readonly #store: WriteBehind;
  /** When each region was announced; 0 for never. No prefix is below another one, and all of the key space is in one. */
  readonly #announced = new Map<Prefix, number>([["", 0]]);

  /** @param name whose regions: each DHT has its own */
  constructor(metadata: MetadataStore, name: string) {
    this.#store = new WriteBehind(metadata, `routing/sweep/regions/${name}/`, { delayMs: WRITE_AFTER_MS });
  }

  /** Takes up what is stored. */
  async open(): Promise<void> {
    const stored: (readonly [Prefix, number])[] = [];
    for await (const [name, bytes] of this.#store.range("")) {
      const prefix = name.slice(PREFIX_MARK.length);
      if (isRegion.test(prefix)) stored.push([prefix, Number(Buffer.from(bytes).toString())]);
    }
    for (const [prefix, at] of stored.toSorted((a, b) => a[1] - b[1])) this.#put(prefix, at);
  }

  /** Forgets when regions were announced: all are due. */
  forget(): void {
    for (const prefix of this.prefixes()) this.#write(prefix, undefined);
    this.#announced.clear();
    this.#announced.set("", 0);
  }

  prefixes(): readonly Prefix[] {
    return [...this.#announced.keys()];
  }

  /** When it was announced; of one that is no region, when the one was that it is in. 0 for never. */
  announced(prefix: Prefix): number {
    return this.#announced.get(this.around(prefix) ?? prefix) ?? 0;
  }

  /** The region that a prefix is in; undefined where it is cut into several. */
  around(prefix: Prefix): Prefix | undefined {
    for (let length = prefix.length; length >= 0; length -= 1) {
      const shorter = prefix.slice(0, length);
      if (this.#announced.has(shorter)) return shorter;
    }
    return undefined;
  }

  /** By the region that each is in. */
  grouped<K extends Placed>(keys: readonly K[]): Map<Prefix, K[]> {
    return Map.groupBy(keys, ({ kadId }) => this.around(prefixOf(kadId, MOST_BITS)) as Prefix);
  }

  /** Makes one region of all that is below the prefix, which was announced then. */
  set(prefix: Prefix, at: number): void {
    this.#put(prefix, at);
    this.#write(prefix, at);
  }

  /** Notes that nothing had to be announced; after a restart it is looked at again. */
  skip(prefix: Prefix, at: number): void {
    this.#announced.set(prefix, at);
  }

  /** The regions that a prefix is in, or that are in it, are due as if they had never been announced. */
  bringForward(prefix: Prefix): void {
    const around = this.around(prefix);
    const late = around === undefined ? this.prefixes().filter((each) => each.startsWith(prefix)) : [around];
    for (const each of late) this.set(each, 0);
  }

  /** Cuts regions that are larger than those of that many bits. */
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

  /** Regions whose moment has passed since they were announced. */
  *due(cycle: Cycle, now: number): Generator<Due, void, undefined> {
    for (const [prefix, announced] of this.#announced) {
      const at = momentBefore(cycle, prefix, now);
      if (announced < at) yield { prefix, at };
    }
  }

  /** The next moment of a region after now. */
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
    const around = this.around(prefix);
    if (around === undefined) for (const other of this.#below(prefix)) this.#remove(other);
    if (around !== undefined && around !== prefix) {
      const before = this.#announced.get(around) as number;
      this.#remove(around);
      for (let length = prefix.length; length > around.length; length -= 1) {
        const sibling = siblingOf(prefix.slice(0, length));
        this.#announced.set(sibling, before);
        if (before > 0) this.#write(sibling, before);
      }
    }
    this.#announced.set(prefix, at);
  }

  /** The regions into which a prefix is cut. As all of the key space is in one, a walk down comes to each of them. */
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

/** In front of a stored prefix, which may be empty. */
const PREFIX_MARK = "p";
