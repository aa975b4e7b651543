/** One hour of metrics of the server and of each route. */
import type { HttpModule, RequestCounts } from "../../../core/http/index.ts";
import type { Module } from "../../../core/types.ts";
import type { History as Columns, Figures, RouteFigures, RouteSeries, RouteWindow, ServerSeries } from "../types.ts";
import { processMeter, rounded } from "./process.ts";
import { type RouteRow, RouteRows, SAMPLES, type SavedRow } from "./routes.ts";
import { add, ERRORS, emptyTally, percentile, RECEIVED, REQUESTS, SENT, type Tally, tallyOf, WIDTH } from "./tally.ts";

/** Seconds between samples. */
const INTERVAL = 10;
const SAMPLES_OF_MINUTE = 60 / INTERVAL;

type Measured = Record<ServerSeries, number>;

/** How plots read a route's sample: rates per second, latencies in seconds. */
const routeReaders: Readonly<Record<RouteSeries, (tally: ArrayLike<number>, seconds: number) => number | undefined>> = {
  requests: (tally, seconds) => (tally[REQUESTS] as number) / seconds,
  errors: (tally, seconds) => (tally[ERRORS] as number) / seconds,
  received: (tally, seconds) => (tally[RECEIVED] as number) / seconds,
  sent: (tally, seconds) => (tally[SENT] as number) / seconds,
  p50: (tally) => percentile(tally, 0.5),
  p90: (tally) => percentile(tally, 0.9),
  p99: (tally) => percentile(tally, 0.99),
};

export const routeSeries = Object.keys(routeReaders) as readonly RouteSeries[];

export const serverSeries = [
  "cpu",
  "event_loop",
  "rss",
  "heap",
  "connections",
  "active",
  "requests",
  "errors",
  "received",
  "sent",
] as const satisfies readonly ServerSeries[];

/**
 * The history for the next instance of this module. An instance with another format starts with an
 * empty history.
 */
interface SavedHistory {
  readonly form: string;
  readonly taken: number;
  readonly time: Float64Array;
  readonly seconds: Float64Array;
  readonly server: ReadonlyMap<ServerSeries, Float64Array>;
  readonly routes: readonly SavedRow[];
}

const FORM = [SAMPLES, WIDTH, ...serverSeries].join(" ");

/** Takes a sample from existing counters at regular intervals, while its module is loaded. */
export class History {
  readonly #module: Module;
  readonly #counts: RequestCounts;
  readonly #measure: () => Measured;
  readonly #routes = new RouteRows();
  readonly #server = new Map<ServerSeries, Float64Array>(serverSeries.map((name) => [name, new Float64Array(SAMPLES)]));
  /** The time of each sample, and the number of seconds that it covers. */
  readonly #time = new Float64Array(SAMPLES);
  readonly #seconds = new Float64Array(SAMPLES);
  /** Total number of samples taken. The samples are in ring buffers. */
  #taken = 0;
  #last: number;

  constructor(module: Module) {
    this.#module = module;
    this.#counts = module.depends<HttpModule>("http").counts(module);
    this.#measure = this.#meter();
    this.#last = module.now();
    this.#routes.skip(this.#counts);
    module.add_timer(INTERVAL, () => {
      this.#sample();
      return INTERVAL;
    });
  }

  save(): SavedHistory {
    return {
      form: FORM,
      taken: this.#taken,
      time: this.#time,
      seconds: this.#seconds,
      server: this.#server,
      routes: [...this.#routes.rows].map((row) => row.save()),
    };
  }

  restore(saved: SavedHistory | undefined): void {
    if (saved?.form !== FORM) return;
    this.#taken = saved.taken;
    this.#time.set(saved.time);
    this.#seconds.set(saved.seconds);
    for (const [name, samples] of saved.server) this.#server.get(name)?.set(samples);
    this.#routes.restore(saved.routes);
  }

  /** Returns series of the server. */
  columns(names: readonly ServerSeries[]): Columns {
    return this.#columnsOf(names, (name, slot) => this.#server.get(name)?.[slot]);
  }

  /** Returns undefined for a route without requests in the last hour. */
  columnsOfRoute(module: string, route: string, names: readonly RouteSeries[]): Columns | undefined {
    const row = this.#routes.find(module, route);
    if (row === undefined) return undefined;
    return this.#columnsOf(names, (name, slot) => routeReaders[name](row.sample(slot), this.#seconds[slot] as number));
  }

  /** Returns the routes, the busiest first. */
  routes(): RouteFigures[] {
    const open = this.#routes.sinceLast(this.#counts);
    return [...this.#routes.rows]
      .map((row) => this.#metricsOf(row, open.get(row) ?? emptyTally()))
      .filter(({ hour }) => hour.requests > 0)
      .sort((one, other) => other.hour.requests - one.hour.requests);
  }

  /** Returns a function for events. Each call of it measures the time since the previous call. */
  currentMetrics(): () => Figures {
    const measure = this.#meter();
    return () => ({
      time: new Date().toISOString(),
      ...measure(),
      modules: this.#module.server.modules().length,
    });
  }

  /** Returns a function. Each call of it measures the time since the previous call. */
  #meter(): () => Measured {
    const ofProcess = processMeter();
    let last = tallyOf(this.#counts.total);
    let at = performance.now();
    return () => {
      const now = tallyOf(this.#counts.total);
      const seconds = Math.max(0.001, (performance.now() - at) / 1000);
      const rate = (index: number) => rounded(((now[index] as number) - (last[index] as number)) / seconds);
      const rates = { requests: rate(REQUESTS), errors: rate(ERRORS), received: rate(RECEIVED), sent: rate(SENT) };
      last = now;
      at = performance.now();
      const { connections, requests } = this.#module.server.status();
      return { ...ofProcess(), connections, active: requests.length, ...rates };
    };
  }

  #sample(): void {
    const slot = this.#taken % SAMPLES;
    const now = this.#module.now();
    this.#time[slot] = now;
    this.#seconds[slot] = Math.max(0.001, now - this.#last);
    this.#last = now;
    this.#taken += 1;
    const measured = this.#measure();
    for (const [name, samples] of this.#server) samples[slot] = measured[name];
    this.#routes.sample(slot, this.#counts);
  }

  /** Returns the latest slots of the rings, the oldest first. */
  #slots(samples = SAMPLES): number[] {
    const length = Math.min(samples, this.#taken);
    return Array.from({ length }, (_, at) => (this.#taken - length + at) % SAMPLES);
  }

  #columnsOf<N extends string>(names: readonly N[], read: (name: N, slot: number) => number | undefined): Columns {
    const slots = this.#slots();
    const columns = names.map((name) => [name, slots.map((slot) => read(name, slot) ?? null)]);
    return {
      interval: INTERVAL,
      time: slots.map((slot) => this.#time[slot] as number),
      series: Object.fromEntries(columns),
    };
  }

  /** `open` is what was counted since the last sample. */
  #metricsOf(row: RouteRow, open: Tally): RouteFigures {
    const sumOf = (samples: readonly ArrayLike<number>[]): Tally => {
      const sum = Float64Array.from(open);
      for (const sample of samples) add(sum, sample);
      return sum;
    };
    const latestOf = (samples: number) => sumOf(this.#slots(samples).map((slot) => row.sample(slot)));
    const latest = this.#slots(1).reduce((seconds, slot) => seconds + (this.#seconds[slot] as number), 0);
    const seconds = Math.max(1, this.#module.now() - this.#last + latest);
    return {
      module: row.module,
      route: row.route,
      rate: rounded((latestOf(1)[REQUESTS] as number) / seconds),
      minute: windowOf(latestOf(SAMPLES_OF_MINUTE)),
      hour: windowOf(sumOf([row.hour])),
    };
  }
}

function windowOf(sum: Tally): RouteWindow {
  const requests = sum[REQUESTS] as number;
  const errors = sum[ERRORS] as number;
  if (requests === 0) return { requests, errors };
  const latency = (share: number) => Math.round((percentile(sum, share) ?? 0) * MICROSECONDS) / MICROSECONDS;
  return { requests, errors, p50: latency(0.5), p90: latency(0.9), p99: latency(0.99) };
}

/** Microseconds in a second. */
const MICROSECONDS = 1e6;
