/** Counts requests by module and route when they end. */
import type { HttpFinishedEvent, Module } from "../../types.ts";

/** Upper bounds of the buckets of latencies, seconds; one more bucket is above the last. */
export const latencyBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** Label of requests that no route served, and of responses without a status. */
const NONE = "none";
/** Label of routes beyond `MAX_ROUTES`. Only modules that create ever new routes reach it. */
const OTHER = "other";
const MAX_ROUTES = 5000;

/** Classes of status; "none" where the client left before one was sent. */
export const statusClasses = [NONE, "1xx", "2xx", "3xx", "4xx", "5xx"] as const;

// The numbers of a route are in one array, in this order, because each request updates them.
const INCOMPLETE = statusClasses.length;
const RECEIVED = INCOMPLETE + 1;
const SENT = RECEIVED + 1;
const HANDLER = SENT + 1;
const DURATION = HANDLER + 1;
const BUCKETS = DURATION + 1;
const LENGTH = BUCKETS + latencyBounds.length + 1;

/** Counters of one route. They only grow. */
export class RouteCounts {
  readonly module: string;
  readonly route: string;
  readonly #numbers = new Float64Array(LENGTH);

  constructor(module: string, route: string) {
    this.module = module;
    this.route = route;
  }

  /** Finished requests by status class, in the order of `statusClasses`. */
  get classes(): Float64Array {
    return this.#numbers.subarray(0, INCOMPLETE);
  }

  /** Requests whose client did not receive the whole response. */
  get incomplete(): number {
    return this.#at(INCOMPLETE);
  }

  /** Bytes of request bodies that were read. */
  get received(): number {
    return this.#at(RECEIVED);
  }

  /** Bytes of response bodies that were written. */
  get sent(): number {
    return this.#at(SENT);
  }

  /** Milliseconds for which handlers blocked the event loop. */
  get handler(): number {
    return this.#at(HANDLER);
  }

  /** Milliseconds from the request heads to the ends of the responses. */
  get duration(): number {
    return this.#at(DURATION);
  }

  /** Requests by latency: one number for each of `latencyBounds`, and one for longer requests. */
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

  /** All counters, in the form that `absorb` takes. */
  get numbers(): readonly number[] {
    return [...this.#numbers];
  }

  /** The increase since the numbers `before`; undefined when nothing changed. */
  since(before: readonly number[] | undefined): readonly number[] | undefined {
    const numbers = Array.from(this.#numbers, (value, at) => value - (before?.[at] ?? 0));
    return numbers.some((value) => value !== 0) ? numbers : undefined;
  }

  /** Adds numbers of another process. */
  absorb(numbers: readonly number[]): void {
    for (let at = 0; at < LENGTH; at += 1) this.#numbers[at] = this.#at(at) + (numbers[at] ?? 0);
  }

  /** Adds the counters of another route. */
  add(other: RouteCounts): void {
    for (let at = 0; at < LENGTH; at += 1) this.#numbers[at] = this.#at(at) + other.#at(at);
  }

  #at(index: number): number {
    return this.#numbers[index] as number;
  }
}

/** The increase of a route's counters in another process since its last report. */
export interface CountedElsewhere {
  readonly module: string;
  readonly route: string;
  readonly numbers: readonly number[];
}

export class RequestCounts {
  /** Whether any module uses the counters. */
  isWanted = false;
  /** By route; two modules rarely have the same route. */
  readonly #byRoute = new Map<string, RouteCounts[]>();
  #known = 0;
  /** Counters of modules that were forgotten. */
  readonly #gone = new RouteCounts("*", "*");

  /**
   * The counters of all requests together, added up when they are read and not with each request.
   */
  get total(): RouteCounts {
    const total = new RouteCounts("*", "*");
    total.add(this.#gone);
    for (const counts of this) total.add(counts);
    return total;
  }

  count(event: HttpFinishedEvent): void {
    this.#of(event.module ?? NONE, event.route ?? NONE).count(event);
  }

  /** Adds counters of another process of the server. */
  absorb(counted: readonly CountedElsewhere[]): void {
    for (const { module, route, numbers } of counted) this.#of(module, route).absorb(numbers);
  }

  /**
   * Merges the counters of an unloaded module into the total, so that modules that come and go do
   * not use up memory.
   */
  forget(module: string): void {
    for (const [route, all] of this.#byRoute) {
      const remaining = all.filter((counts) => counts.module !== module);
      for (const counts of all) if (counts.module === module) this.#gone.add(counts);
      this.#known -= all.length - remaining.length;
      if (remaining.length === 0) this.#byRoute.delete(route);
      else this.#byRoute.set(route, remaining);
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

/**
 * Returns the shared counters to a module. Requests are counted once, and only while a module uses
 * the counters.
 */
export interface RequestCounting {
  (asker: Module): RequestCounts;
  /** The counters, for readers that must not start the counting. */
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
    counts.isWanted = true;
    end ??= module.server.follow("http-finished", (event) => counts.count(event));
    const leave = () => {
      askers.delete(mark);
      if (askers.size > 0) return;
      counts.isWanted = false;
      end?.();
      end = undefined;
    };
    asker.on_release("count of requests", leave, "follower");
    return counts;
  };
  return Object.assign(ask, { all: counts });
}
