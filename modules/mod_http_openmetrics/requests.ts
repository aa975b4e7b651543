/** Requests by module and route, counted as they end. */
import type { HttpFinishedEvent, MetricDeclarations, MetricSample, MetricsProvider, Module } from "../../core/types.ts";

const place = { labels: ["module", "route"] } as const;

/** Seconds. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

export const requestMetrics = {
  modhost_http_requests_total: {
    kind: "counter",
    help: "Requests that are over, by the class of their status; none where the client left before one was sent.",
    ...place,
    labels: [...place.labels, "class"],
  },
  modhost_http_requests_incomplete_total: {
    kind: "counter",
    help: "Requests whose client did not receive the whole answer.",
    ...place,
  },
  modhost_http_request_duration_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "Time from the parsed head of a request to the end of its answer.",
    ...place,
    buckets: bounds,
  },
  modhost_http_request_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of request bodies that were read.",
    ...place,
  },
  modhost_http_response_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of answer bodies that were written.",
    ...place,
  },
  modhost_http_handler_seconds_total: {
    kind: "counter",
    unit: "seconds",
    help: "Time for which handlers kept the event loop, each up to its first await.",
    ...place,
  },
} as const satisfies MetricDeclarations;

/** Of requests that no route answered, and of answers without a status. */
const NONE = "none";
/** Of routes beyond the bound: there are so many only where modules with ever new routes come and go. */
const OTHER = "other";
const MAX_ROUTES = 5000;

const classes = [NONE, "1xx", "2xx", "3xx", "4xx", "5xx"];

// The numbers of a route lie together, in this order: this is counted for each request.
const INCOMPLETE = classes.length;
const RECEIVED = INCOMPLETE + 1;
const SENT = RECEIVED + 1;
const HANDLER = SENT + 1;
const DURATION = HANDLER + 1;
const BUCKETS = DURATION + 1;
const LENGTH = BUCKETS + bounds.length + 1;

interface RouteCounts {
  readonly module: string;
  readonly route: string;
  readonly numbers: Float64Array;
}

/** Counts for as long as the module is there. */
export function countRequests(module: Module): MetricsProvider {
  /** By route; hardly ever do two modules have the same. */
  const byRoute = new Map<string, RouteCounts[]>();
  let known = 0;

  const begin = (name: string, route: string): RouteCounts => {
    if (known >= MAX_ROUTES && route !== OTHER) return countsOf(OTHER, OTHER);
    known += 1;
    const counts = { module: name, route, numbers: new Float64Array(LENGTH) };
    byRoute.set(route, [...(byRoute.get(route) ?? []), counts]);
    return counts;
  };
  const countsOf = (name: string, route: string): RouteCounts => {
    for (const counts of byRoute.get(route) ?? []) if (counts.module === name) return counts;
    return begin(name, route);
  };

  module.hook("http-finished", (event: HttpFinishedEvent) => {
    const { status, duration } = event;
    const { numbers } = countsOf(event.module ?? NONE, event.route ?? NONE);
    const add = (at: number, by: number) => {
      numbers[at] = (numbers[at] as number) + by;
    };
    add(status < 100 || status > 599 ? 0 : Math.floor(status / 100), 1);
    if (!event.complete) add(INCOMPLETE, 1);
    add(RECEIVED, event.received);
    add(SENT, event.bytes);
    add(HANDLER, event.busy);
    add(DURATION, duration);
    let bucket = 0;
    while (bucket < bounds.length && duration > (bounds[bucket] as number) * 1000) bucket += 1;
    add(BUCKETS + bucket, 1);
  });

  // What is loaded and unloaded over the years must not add up.
  module.hook("module-unloaded", (event) => {
    for (const [route, all] of byRoute) {
      const kept = all.filter((counts) => counts.module !== event.module);
      known -= all.length - kept.length;
      if (kept.length === 0) byRoute.delete(route);
      else byRoute.set(route, kept);
    }
  });
  return { metrics: requestMetrics, collect: () => [...byRoute.values()].flat().flatMap(samplesOf) };
}

function samplesOf({ module, route, numbers }: RouteCounts): MetricSample[] {
  const labels = { module, route };
  const at = (index: number) => numbers[index] as number;
  const duration = { counts: [...numbers.subarray(BUCKETS)], sum: at(DURATION) / 1000 };
  const samples: (MetricSample & { readonly name: keyof typeof requestMetrics })[] = [
    { name: "modhost_http_requests_incomplete_total", labels, value: at(INCOMPLETE) },
    { name: "modhost_http_request_duration_seconds", labels, value: duration },
    { name: "modhost_http_request_bytes_total", labels, value: at(RECEIVED) },
    { name: "modhost_http_response_bytes_total", labels, value: at(SENT) },
    { name: "modhost_http_handler_seconds_total", labels, value: at(HANDLER) / 1000 },
  ];
  for (const [index, name] of classes.entries()) {
    const value = at(index);
    if (value > 0) samples.push({ name: "modhost_http_requests_total", labels: { ...labels, class: name }, value });
  }
  return samples;
}
