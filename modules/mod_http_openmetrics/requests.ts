/** Requests by module and route, counted as they end. */
import { createFigures } from "../../core/index.ts";
import type { HttpFinishedEvent, MetricDeclarations, MetricSeries, MetricsProvider, Module } from "../../core/types.ts";

/** As many as there are routes, and as many again for those that came and went with reloads. */
const MAX_SERIES = 10_000;

const place = { labels: ["module", "route"], max_series: MAX_SERIES } as const;

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
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
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

const NONE = "none";
const classes = [NONE, "1xx", "2xx", "3xx", "4xx", "5xx"];

/** The series of one route; those of its classes come with the first answer of each. */
interface RouteSeries {
  readonly classes: (MetricSeries | undefined)[];
  readonly incomplete: MetricSeries;
  readonly duration: MetricSeries;
  readonly received: MetricSeries;
  readonly sent: MetricSeries;
  readonly handler: MetricSeries;
}

/** Counts for as long as the module is there. */
export function countRequests(module: Module): MetricsProvider {
  const figures = createFigures(requestMetrics);
  const byModule = new Map<string, Map<string, RouteSeries>>();

  const seriesOf = (name: string, route: string): RouteSeries => {
    let routes = byModule.get(name);
    if (routes === undefined) byModule.set(name, (routes = new Map()));
    let series = routes.get(route);
    if (series === undefined) {
      const labels = [name, route] as const;
      series = {
        classes: [],
        incomplete: figures.series("modhost_http_requests_incomplete_total", ...labels),
        duration: figures.series("modhost_http_request_duration_seconds", ...labels),
        received: figures.series("modhost_http_request_bytes_total", ...labels),
        sent: figures.series("modhost_http_response_bytes_total", ...labels),
        handler: figures.series("modhost_http_handler_seconds_total", ...labels),
      };
      routes.set(route, series);
    }
    return series;
  };

  module.hook("http-finished", (event: HttpFinishedEvent) => {
    const { module: name = NONE, route = NONE, status } = event;
    const series = seriesOf(name, route);
    const at = status < 100 || status > 599 ? 0 : Math.floor(status / 100);
    series.classes[at] ??= figures.series("modhost_http_requests_total", name, route, classes[at] as string);
    series.classes[at].add();
    if (!event.complete) series.incomplete.add();
    series.duration.observe(event.duration / 1000);
    if (event.received > 0) series.received.add(event.received);
    if (event.bytes > 0) series.sent.add(event.bytes);
    series.handler.add(event.busy / 1000);
  });

  // What is loaded and unloaded over the years must not add up.
  module.hook("module-unloaded", (event: { readonly module: string }) => {
    for (const [route, series] of byModule.get(event.module) ?? []) {
      for (const name of Object.keys(requestMetrics) as (keyof typeof requestMetrics)[]) {
        figures.remove(name, event.module, route);
      }
      series.classes.forEach((_, at) => {
        figures.remove("modhost_http_requests_total", event.module, route, classes[at] as string);
      });
    }
    byModule.delete(event.module);
  });
  return figures;
}
