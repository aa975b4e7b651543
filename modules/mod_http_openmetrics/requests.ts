/** Request metrics by module and route. */
import { type HttpModule, latencyBounds, type RouteCounts, statusClasses } from "../../core/http/index.ts";
import type { MetricDeclarations, MetricSample, MetricsProvider, Module } from "../../core/types.ts";

const routeLabels = { labels: ["module", "route"] } as const;

export const requestMetrics = {
  modhost_http_requests_total: {
    kind: "counter",
    help: "Finished requests, by the class of their status; none if the client left before one was sent.",
    ...routeLabels,
    labels: [...routeLabels.labels, "class"],
  },
  modhost_http_requests_incomplete_total: {
    kind: "counter",
    help: "Requests whose client did not receive the whole response.",
    ...routeLabels,
  },
  modhost_http_request_duration_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "Time from the parsed head of a request to the end of its response.",
    ...routeLabels,
    buckets: latencyBounds,
  },
  modhost_http_request_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of request bodies that were read.",
    ...routeLabels,
  },
  modhost_http_response_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of response bodies that were written.",
    ...routeLabels,
  },
  modhost_http_handler_seconds_total: {
    kind: "counter",
    unit: "seconds",
    help: "Time for which handlers blocked the event loop, each until its first await.",
    ...routeLabels,
  },
} as const satisfies MetricDeclarations;

/** Counts while the module is loaded. */
export function requestMetricsProvider(module: Module): MetricsProvider {
  const counts = module.depends<HttpModule>("http").counts(module);
  return { metrics: requestMetrics, collect: () => [...counts].flatMap(samplesOf) };
}

function samplesOf(counts: RouteCounts): MetricSample[] {
  const labels = { module: counts.module, route: counts.route };
  const duration = { counts: [...counts.latencies], sum: counts.duration / 1000 };
  const samples: (MetricSample & { readonly name: keyof typeof requestMetrics })[] = [
    { name: "modhost_http_requests_incomplete_total", labels, value: counts.incomplete },
    { name: "modhost_http_request_duration_seconds", labels, value: duration },
    { name: "modhost_http_request_bytes_total", labels, value: counts.received },
    { name: "modhost_http_response_bytes_total", labels, value: counts.sent },
    { name: "modhost_http_handler_seconds_total", labels, value: counts.handler / 1000 },
  ];
  for (const [index, value] of counts.classes.entries()) {
    const name = statusClasses[index] as string;
    if (value > 0) samples.push({ name: "modhost_http_requests_total", labels: { ...labels, class: name }, value });
  }
  return samples;
}
