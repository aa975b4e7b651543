/**
 * The metrics of the proxy. Apps of the same name on several virtual hosts are counted together.
 */
import { createMetrics } from "../../core/index.ts";
import type { MetricDeclarations, MetricsProvider } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";

/** Metrics that are read from the upstreams when somebody requests them. */
const ofUpstreams = {
  modhost_http_proxy_requests_total: {
    kind: "counter",
    help: "Responses of upstreams, by the class of their status; websockets are 1xx.",
    labels: ["app", "upstream", "class"],
  },
  modhost_http_proxy_failures_total: {
    kind: "counter",
    help: "Requests to which an upstream sent no whole response, by reason: connect, timeout, lost, bad_answer.",
    labels: ["app", "upstream", "reason"],
  },
  modhost_http_proxy_retries_total: {
    kind: "counter",
    help: "Requests that were retried, by the upstream that got them then.",
    labels: ["app", "upstream"],
  },
  modhost_http_proxy_in_flight: {
    kind: "gauge",
    help: "Requests and websockets of an upstream that are in progress.",
    labels: ["app", "upstream"],
  },
  modhost_http_proxy_healthy: {
    kind: "gauge",
    processes: "max",
    help: "1 for an upstream that gets requests, 0 for one that is unhealthy, failing or drained.",
    labels: ["app", "upstream"],
  },
} as const satisfies MetricDeclarations;

const ofApps = {
  modhost_http_proxy_unavailable_total: {
    kind: "counter",
    help: "Requests for which no upstream was available.",
    labels: ["app"],
  },
  modhost_http_proxy_first_byte_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "Time from a request to the head of its response, retries included.",
    labels: ["app"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
} as const satisfies MetricDeclarations;

export class ProxyMetrics {
  readonly #ofApps = createMetrics(ofApps);

  /** Returns a provider for `module.provides("metrics", ...)`; `apps` returns the current apps. */
  provider(apps: () => Iterable<ProxiedApp>, now: () => number): MetricsProvider {
    return {
      metrics: { ...ofUpstreams, ...ofApps },
      collect: () => [...upstreamSeries(apps(), now()).collect(), ...this.#ofApps.collect()],
    };
  }

  /** `seconds` is the time from the request to the head of the response. */
  firstByte(app: ProxiedApp, seconds: number): void {
    this.#ofApps.observe("modhost_http_proxy_first_byte_seconds", seconds, app.name);
  }

  unavailable(app: ProxiedApp): void {
    this.#ofApps.add("modhost_http_proxy_unavailable_total", 1, app.name);
  }
}

function upstreamSeries(apps: Iterable<ProxiedApp>, now: number) {
  const series = createMetrics(ofUpstreams);
  const all = [...apps].flatMap(({ name, upstreams }) => upstreams.map((upstream) => ({ name, upstream })));
  for (const { name, upstream } of all) {
    const labels = [name, upstream.name];
    const { classes, reasons, retries } = upstream.counts;
    for (const [digit, count = 0] of classes.entries())
      if (count > 0) series.add("modhost_http_proxy_requests_total", count, ...labels, `${digit}xx`);
    for (const [reason, count] of reasons) series.add("modhost_http_proxy_failures_total", count, ...labels, reason);
    if (retries > 0) series.add("modhost_http_proxy_retries_total", retries, ...labels);
    series.add("modhost_http_proxy_in_flight", upstream.inFlight, ...labels);
    series.set("modhost_http_proxy_healthy", 1, ...labels);
  }
  for (const { name, upstream } of all) {
    if (upstream.state(now) !== "healthy") series.set("modhost_http_proxy_healthy", 0, name, upstream.name);
  }
  return series;
}
