/** The metrics of the proxy. */
import { createMetrics } from "../../core/index.ts";
import type { CountedMetrics, MetricSeries, MetricsProvider } from "../../core/types.ts";
import type { ProxiedApp } from "./app.ts";
import type { Upstream } from "./upstream.ts";

/** Apps with the same name on several virtual hosts are counted together. */
const ofUpstream = ["app", "upstream"] as const;

const declarations = {
  modhost_http_proxy_requests_total: {
    kind: "counter",
    help: "Answers of upstreams, by the class of their status; websockets are 1xx.",
    labels: [...ofUpstream, "class"],
  },
  modhost_http_proxy_failures_total: {
    kind: "counter",
    help: "Requests that an upstream did not answer, or not to the end: connect, timeout, lost, bad_answer.",
    labels: [...ofUpstream, "reason"],
  },
  modhost_http_proxy_retries_total: {
    kind: "counter",
    help: "Requests that were tried again, by the upstream that was asked then.",
    labels: ofUpstream,
  },
  modhost_http_proxy_unavailable_total: {
    kind: "counter",
    help: "Requests for which no upstream could be asked.",
    labels: ["app"],
  },
  modhost_http_proxy_in_flight: {
    kind: "gauge",
    help: "Requests and websockets that an upstream has now.",
    labels: ofUpstream,
  },
  modhost_http_proxy_healthy: {
    kind: "gauge",
    processes: "max",
    help: "1 for an upstream that gets requests, 0 for one that is unhealthy, failing or drained.",
    labels: ofUpstream,
  },
  modhost_http_proxy_first_byte_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "Time from a request to the head of its answer, retries included.",
    labels: ["app"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
} as const;

type MetricName = keyof typeof declarations;

const statuses = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const;
const reasons = ["connect", "timeout", "lost", "bad_answer"] as const;

export class ProxyMetrics {
  readonly #series: CountedMetrics<MetricName> = createMetrics(declarations);

  /** Series that every request updates. */
  readonly #ofUpstream = new WeakMap<
    Upstream,
    { readonly firstByte: MetricSeries; readonly byClass: MetricSeries[] }
  >();

  /** Returns a provider for `module.provides("metrics", ...)`; `apps` returns the current apps. */
  provider(apps: () => Iterable<ProxiedApp>, now: () => number): MetricsProvider {
    const series = this.#series;
    return {
      metrics: declarations,
      collect() {
        const sums = new Map<string, { labels: [string, string]; inFlight: number; isHealthy: boolean }>();
        for (const app of apps()) {
          for (const upstream of app.upstreams) {
            const labels = labelsOf(app, upstream);
            const { inFlight, isHealthy } = sums.get(labels.join("\n")) ?? { inFlight: 0, isHealthy: true };
            sums.set(labels.join("\n"), {
              labels,
              inFlight: inFlight + upstream.inFlight,
              isHealthy: isHealthy && upstream.state(now()) === "healthy",
            });
          }
        }
        for (const { labels, inFlight, isHealthy } of sums.values()) {
          series.set("modhost_http_proxy_in_flight", inFlight, ...labels);
          series.set("modhost_http_proxy_healthy", isHealthy ? 1 : 0, ...labels);
        }
        return series.collect();
      },
    };
  }

  /** `seconds` is the time from the request to the head of the response. */
  responded(app: ProxiedApp, upstream: Upstream, status: number, seconds: number): void {
    let own = this.#ofUpstream.get(upstream);
    if (own === undefined) {
      const firstByte = this.#series.series("modhost_http_proxy_first_byte_seconds", app.name);
      this.#ofUpstream.set(upstream, (own = { firstByte, byClass: [] }));
    }
    const digit = Math.floor(status / 100);
    own.byClass[digit] ??= this.#series.series(
      "modhost_http_proxy_requests_total",
      ...labelsOf(app, upstream),
      `${digit}xx`,
    );
    own.byClass[digit].add();
    own.firstByte.observe(seconds);
  }

  failed(app: ProxiedApp, upstream: Upstream, reason: (typeof reasons)[number]): void {
    this.#series.add("modhost_http_proxy_failures_total", 1, ...labelsOf(app, upstream), reason);
  }

  retried(app: ProxiedApp, upstream: Upstream): void {
    this.#series.add("modhost_http_proxy_retries_total", 1, ...labelsOf(app, upstream));
  }

  unavailable(app: ProxiedApp): void {
    this.#series.add("modhost_http_proxy_unavailable_total", 1, app.name);
  }

  /** Removes the series of an upstream that is no longer configured. */
  forget(app: ProxiedApp, upstream: Upstream): void {
    const labels = labelsOf(app, upstream);
    for (const status of statuses) this.#series.remove("modhost_http_proxy_requests_total", ...labels, status);
    for (const reason of reasons) this.#series.remove("modhost_http_proxy_failures_total", ...labels, reason);
    this.#series.remove("modhost_http_proxy_retries_total", ...labels);
    this.#series.remove("modhost_http_proxy_in_flight", ...labels);
    this.#series.remove("modhost_http_proxy_healthy", ...labels);
  }
}

function labelsOf({ name }: ProxiedApp, upstream: Upstream): [string, string] {
  return [name, upstream.name];
}
