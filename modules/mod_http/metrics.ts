/** Metrics of the HTTP service. Requests by route are counted in the module that exposes them. */
import type { HttpService } from "../../core/http/index.ts";
import type { MetricDeclarations, MetricSample, MetricsProvider } from "../../core/types.ts";

const layer = ["module", "middleware"] as const;

export const httpMetrics = {
  modhost_http_open_connections: { kind: "gauge", help: "Open connections." },
  modhost_http_connections_total: {
    kind: "counter",
    help: "Accepted connections, by scheme.",
    labels: ["scheme"],
  },
  modhost_http_malformed_requests_total: { kind: "counter", help: "Requests that could not be parsed." },
  modhost_http_requests_in_flight: {
    kind: "gauge",
    help: "Requests in progress, by module.",
    labels: ["module"],
  },
  modhost_http_middleware_requests_total: {
    kind: "counter",
    help: "Requests that passed through middleware before the apps.",
    labels: layer,
  },
  modhost_http_middleware_answered_total: {
    kind: "counter",
    help: "Requests that middleware responded to itself.",
    labels: layer,
  },
  modhost_http_middleware_failed_total: { kind: "counter", help: "Requests that middleware failed on.", labels: layer },
  modhost_http_middleware_seconds_total: {
    kind: "counter",
    unit: "seconds",
    help: "Time that requests spent in middleware, without the time in later middleware and the app.",
    labels: layer,
  },
} as const satisfies MetricDeclarations;

export function httpMetricsProvider(service: HttpService): MetricsProvider {
  return {
    metrics: httpMetrics,
    collect() {
      const { connections, malformed, active } = service.metrics();
      const samples: MetricSample[] = [
        { name: "modhost_http_open_connections", value: connections.open },
        { name: "modhost_http_connections_total", labels: { scheme: "http" }, value: connections.plain },
        { name: "modhost_http_connections_total", labels: { scheme: "https" }, value: connections.secure },
        { name: "modhost_http_malformed_requests_total", value: malformed },
      ];
      for (const [module, value] of active) {
        samples.push({ name: "modhost_http_requests_in_flight", labels: { module }, value });
      }
      for (const { module, name, requests, answered, failed, time } of service.middleware()) {
        const labels = { module, middleware: name };
        samples.push(
          { name: "modhost_http_middleware_requests_total", labels, value: requests },
          { name: "modhost_http_middleware_answered_total", labels, value: answered },
          { name: "modhost_http_middleware_failed_total", labels, value: failed },
          { name: "modhost_http_middleware_seconds_total", labels, value: time / 1000 },
        );
      }
      return samples;
    },
  };
}
