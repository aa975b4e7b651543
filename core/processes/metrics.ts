/**
 * Metrics of a server of several processes. The secondaries send theirs to the primary, which shows
 * them as one server.
 */
import type { SiblingState } from "../host.ts";
import type { CountedElsewhere, HttpModule, RouteCounts } from "../http/index.ts";
import { createMetrics } from "../metrics/counted_metrics.ts";
import type { MetricDeclarations, MetricSample, MetricsProvider, Module, OwnedItem } from "../types.ts";
import { actAs } from "../util/usage.ts";

/** The metrics of one provider of a secondary. */
export interface CollectedElsewhere {
  readonly metrics: MetricDeclarations;
  readonly host: string;
  readonly samples: readonly MetricSample[];
}

/** Returns a function that collects the metrics of this process's modules for the primary. */
export function collectsMetrics(module: Module): () => Promise<CollectedElsewhere[]> {
  const providers = new Set<OwnedItem<MetricsProvider>>();
  module.handle_items(
    "metrics-provider",
    (item) => void providers.add(item),
    (item) => void providers.delete(item),
  );
  const collect = async ({ item, owner }: OwnedItem<MetricsProvider>) => {
    // The primary reports providers that fail when it collects its own.
    const samples = await Promise.try(() => actAs(owner, () => item.collect())).catch(() => []);
    return { metrics: item.metrics, host: owner.host, samples: [...samples] };
  };
  return () => Promise.all([...providers].map(collect));
}

/** The requests that were counted in this process since the last report. */
export class RequestCountsHere {
  readonly #reported = new WeakMap<RouteCounts, readonly number[]>();
  #http: HttpModule | undefined;
  #counts: Iterable<RouteCounts> = [];

  take(http: HttpModule, asker: Module): CountedElsewhere[] {
    // Another instance has counts of its own.
    if (http !== this.#http) this.#counts = http.counts(asker);
    this.#http = http;
    return [...this.#counts].flatMap((counts) => {
      const { module, route } = counts;
      const numbers = counts.since(this.#reported.get(counts));
      this.#reported.set(counts, counts.numbers);
      return numbers === undefined ? [] : [{ module, route, numbers }];
    });
  }
}

const declarations = {
  modhost_workers: { kind: "gauge", help: "Processes that serve." },
  modhost_worker_ends_total: {
    kind: "counter",
    help: "Processes other than the first that have ended since the first one started.",
  },
  modhost_worker_connections: { kind: "gauge", help: "Open connections of a process.", labels: ["worker"] },
  modhost_worker_cpu_seconds_total: {
    kind: "counter",
    unit: "seconds",
    help: "CPU time of a process, user and system.",
    labels: ["worker"],
  },
  modhost_worker_resident_memory_bytes: {
    kind: "gauge",
    unit: "bytes",
    help: "Memory of a process that is resident.",
    labels: ["worker"],
  },
} as const satisfies MetricDeclarations;

/** Returns the metrics of the processes themselves, from the states that they report. */
export function workerMetrics(states: () => readonly SiblingState[], ends: () => number): MetricsProvider {
  return {
    metrics: declarations,
    collect() {
      const series = createMetrics(declarations);
      const all = states();
      series.set("modhost_workers", all.length);
      series.add("modhost_worker_ends_total", ends());
      for (const { number, connections, cpu, memory } of all) {
        series.set("modhost_worker_connections", connections, String(number));
        series.add("modhost_worker_cpu_seconds_total", cpu, String(number));
        series.set("modhost_worker_resident_memory_bytes", memory, String(number));
      }
      return series.collect();
    },
  };
}
