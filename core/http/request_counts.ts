/** Requests by module and route, counted as they end: for whoever shows them. */
import type { HttpFinishedEvent, Module } from "../types.ts";

/** Upper bounds of the buckets of latencies, seconds; one more bucket is above the last. */
export const latencyBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** Of requests that no route answered, and of answers without a status. */
const NONE = "none";
/** Of routes beyond the bound: there are so many only where modules with ever new routes come and go. */
const OTHER = "other";
const MAX_ROUTES = 5000;

/** Classes of status; "none" where the client left before one was sent. */
export const statusClasses = [NONE, "1xx", "2xx", "3xx", "4xx", "5xx"] as const;

// The numbers of a route lie together, in this order: this is counted for each request.
const INCOMPLETE = statusClasses.length;
const RECEIVED = INCOMPLETE + 1;
const SENT = RECEIVED + 1;
const HANDLER = SENT + 1;
const DURATION = HANDLER + 1;
const BUCKETS = DURATION + 1;
const LENGTH = BUCKETS + latencyBounds.length + 1;

/** What a route has done so far; the numbers only grow. */
export class RouteCounts {
  readonly module: string;
  readonly route: string;
  readonly #numbers = new Float64Array(LENGTH);

  constructor(module: string, route: string) {
    this.module = module;
    this.route = route;
  }

  /** Requests that are over, in the order of `statusClasses`. */
  get classes(): Float64Array {
    return this.#numbers.subarray(0, INCOMPLETE);
  }

  /** Requests whose client did not receive the whole answer. */
  get incomplete(): number {
    return this.#at(INCOMPLETE);
  }

  /** Bytes of request bodies that were read. */
  get received(): number {
    return this.#at(RECEIVED);
  }

  /** Bytes of answer bodies that were written. */
  get sent(): number {
    return this.#at(SENT);
  }

  /** Milliseconds for which handlers kept the event loop. */
  get handler(): number {
    return this.#at(HANDLER);
  }

  /** Milliseconds from the heads of requests to the ends of their answers. */
  get duration(): number {
    return this.#at(DURATION);
  }

  /** Requests by their latency: one number for each of `latencyBounds`, and one for what is above the last. */
  get latencies(): Float64Array {
    return this.#numbers.subarray(BUCKETS);
  }

  count({ status, complete, received, bytes, busy, duration }: HttpFinishedEvent): void {
    const numbers = this.#numbers;
    const add = (at: number, by: number) => {
      numbers[at] = (numbers[at] as number) + by;
    };
    add(status < 100 || status > 599 ? 0 : Math.floor(status / 100), 1);
    if (!complete) add(INCOMPLETE, 1);
    add(RECEIVED, received);
    add(SENT, bytes);
    add(HANDLER, busy);
    add(DURATION, duration);
    let bucket = 0;
    while (bucket < latencyBounds.length && duration > (latencyBounds[bucket] as number) * 1000) bucket += 1;
    add(BUCKETS + bucket, 1);
  }

  /** As `absorb` takes it. */
  get numbers(): readonly number[] {
    return [...this.#numbers];
  }

  /** What came since the numbers were these; undefined for nothing. */
  since(before: readonly number[] | undefined): readonly number[] | undefined {
    const numbers = Array.from(this.#numbers, (value, at) => value - (before?.[at] ?? 0));
    return numbers.some((value) => value !== 0) ? numbers : undefined;
  }

  /** Adds numbers of another process. */
  absorb(numbers: readonly number[]): void {
    for (let at = 0; at < LENGTH; at += 1) this.#numbers[at] = this.#at(at) + (numbers[at] ?? 0);
  }

  /** Takes over what another has counted. */
  add(other: RouteCounts): void {
    for (let at = 0; at < LENGTH; at += 1) this.#numbers[at] = this.#at(at) + other.#at(at);
  }

  #at(index: number): number {
    return this.#numbers[index] as number;
  }
}

/** What a route of another process has done since that told it before. */
export interface CountedElsewhere {
  readonly module: string;
  readonly route: string;
  readonly numbers: readonly number[];
}

export class RequestCounts {
  /** Somebody wants them. */
  isAsked = false;
  /** By route; hardly ever do two modules have the same. */
  readonly #byRoute = new Map<string, RouteCounts[]>();
  #known = 0;
  /** Of modules that were forgotten. */
  readonly #gone = new RouteCounts("*", "*");

  /** Of all requests together, as it is now: added up when somebody looks, and not with each request. */
  get total(): RouteCounts {
    const total = new RouteCounts("*", "*");
    total.add(this.#gone);
    for (const counts of this) total.add(counts);
    return total;
  }

  count(event: HttpFinishedEvent): void {
    this.#of(event.module ?? NONE, event.route ?? NONE).count(event);
  }

  /** Adds what was counted in another process of the server. */
  absorb(counted: readonly CountedElsewhere[]): void {
    for (const { module, route, numbers } of counted) this.#of(module, route).absorb(numbers);
  }

  /** What is loaded and unloaded over the years must not add up. */
  forget(module: string): void {
    for (const [route, all] of this.#byRoute) {
      const kept = all.filter((counts) => counts.module !== module);
      for (const counts of all) if (counts.module === module) this.#gone.add(counts);
      this.#known -= all.length - kept.length;
      if (kept.length === 0) this.#byRoute.delete(route);
      else this.#byRoute.set(route, kept);
    }
  }

  *[Symbol.iterator](): Generator<RouteCounts> {
    for (const all of this.#byRoute.values()) yield* all;
  }

  #of(module: string, route: string): RouteCounts {
    for (const counts of this.#byRoute.get(route) ?? []) if (counts.module === module) return counts;
    if (this.#known >= MAX_ROUTES && route !== OTHER) return this.#of(OTHER, OTHER);
    this.#known += 1;
    const counts = new RouteCounts(module, route);
    this.#byRoute.set(route, [...(this.#byRoute.get(route) ?? []), counts]);
    return counts;
  }
}

/** Counts for all who ask, once, and only while somebody does. */
export interface RequestCounting {
  (asker: Module): RequestCounts;
  /** What is counted, for whoever does not count itself. */
  readonly all: RequestCounts;
}

export function requestCounting(module: Module): RequestCounting {
  const counts = new RequestCounts();
  const askers = new Set<symbol>();
  let end: (() => void) | undefined;
  module.hook("module-unloaded", (event) => counts.forget(event.module));
  const ask = (asker: Module) => {
    const mark = Symbol(asker.name);
    askers.add(mark);
    counts.isAsked = true;
    end ??= module.server.follow("http-finished", (event) => counts.count(event));
    const leave = () => {
      askers.delete(mark);
      if (askers.size > 0) return;
      counts.isAsked = false;
      end?.();
      end = undefined;
    };
    asker.on_release("count of requests", leave, "follower");
    return counts;
  };
  return Object.assign(ask, { all: counts });
}
