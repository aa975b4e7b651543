/** Figures of a server of several processes: those of the others go to the first, which shows one server. */
import type { CountedElsewhere, HttpModule, RequestCounts } from "../http/index.ts";
import { createFigures } from "../metrics/figures.ts";
import type { MetricDeclarations, MetricSample, MetricsProvider, Module, OwnedItem } from "../types.ts";
import type { WorkerState } from "./messages.ts";

/** What one provider of another process gives, as it crosses. */
export interface CollectedThere {
  readonly metrics: MetricDeclarations;
  readonly host: string;
  readonly samples: readonly MetricSample[];
}

/** The figures of this process's modules, for the first one. */
export class OwnFigures {
  readonly #providers = new Set<OwnedItem<MetricsProvider>>();

  constructor(module: Module) {
    module.handle_items(
      "metrics-provider",
      (item) => void this.#providers.add(item),
      (item) => void this.#providers.delete(item),
    );
  }

  async collect(): Promise<CollectedThere[]> {
    const asked = [...this.#providers].map(async ({ item, owner }) => {
      // One that fails is told of where the first process asks its own.
      const samples = await Promise.try(() => item.collect()).catch(() => []);
      return { metrics: item.metrics, host: owner.host, samples: [...samples] };
    });
    return Promise.all(asked);
  }
}

/** What was counted here since it was asked before. */
export class CountedHere {
  readonly #told = new Map<string, readonly number[]>();
  #http: HttpModule | undefined;
  #counts: RequestCounts | undefined;

  take(http: HttpModule, asker: Module): CountedElsewhere[] {
    if (http !== this.#http) {
      // Another instance counts from the beginning.
      this.#http = http;
      this.#counts = undefined;
      this.#told.clear();
    }
    const counts = (this.#counts ??= http.counts(asker));
    return [...counts].flatMap((each) => {
      const { module, route } = each;
      const key = JSON.stringify([module, route]);
      const numbers = each.since(this.#told.get(key));
      this.#told.set(key, each.numbers);
      return numbers === undefined ? [] : [{ module, route, numbers }];
    });
  }
}

const workerMetrics = {
  modhost_workers: { kind: "gauge", help: "Processes that serve." },
  modhost_worker_ends_total: { kind: "counter", help: "Processes beside the first that have ended since it began." },
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

/** The processes, by what they say of themselves; `own` is the first. */
export function workerFigures(states: () => readonly WorkerState[], ends: () => number): MetricsProvider {
  return {
    metrics: workerMetrics,
    collect() {
      const figures = createFigures(workerMetrics);
      const all = states();
      figures.set("modhost_workers", all.length);
      figures.add("modhost_worker_ends_total", ends());
      for (const { number, connections, cpu, memory } of all) {
        figures.set("modhost_worker_connections", connections, String(number));
        figures.add("modhost_worker_cpu_seconds_total", cpu, String(number));
        figures.set("modhost_worker_resident_memory_bytes", memory, String(number));
      }
      return figures.collect();
    },
  };
}
