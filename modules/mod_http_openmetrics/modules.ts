/**
 * Metrics of the server's modules: their states, their resources, and how often they were loaded
 * and unloaded.
 */
import { createMetrics } from "../../core/index.ts";
import type {
  MetricDeclarations,
  MetricSample,
  MetricsProvider,
  Module,
  ModuleEvent,
  ModuleState,
} from "../../core/types.ts";

export const moduleMetrics = {
  modhost_modules: {
    kind: "gauge",
    help: "Instances of modules, by their state.",
    labels: ["status"],
  },
  modhost_module_up: {
    kind: "gauge",
    help: "Whether a module is loaded on all its hosts: 1, or 0.",
    labels: ["module"],
  },
  modhost_module_items: {
    kind: "gauge",
    help: "Resources that a module has added to the server, by kind: hook, item, timer, websocket, and others.",
    labels: ["module", "kind"],
  },
  modhost_module_changes_total: {
    kind: "counter",
    help: "Modules that were loaded, reloaded or unloaded while the server ran.",
    labels: ["module", "change"],
  },
  modhost_metrics_failures_total: {
    kind: "counter",
    help: "Collections of metrics in which a module did not provide its own.",
    labels: ["module"],
  },
} as const satisfies MetricDeclarations;

/** A missing state is a compile error. */
const statuses = Object.keys({
  loading: 0,
  loaded: 0,
  failed: 0,
  quarantined: 0,
  unloading: 0,
} satisfies Record<ModuleState["status"], 0>);

/** Provides metrics of the modules. `failed` counts modules that failed to provide their own. */
export function moduleMetricsProvider(module: Module): { provider: MetricsProvider; failed(module: string): void } {
  const counted = createMetrics({
    modhost_module_changes_total: moduleMetrics.modhost_module_changes_total,
    modhost_metrics_failures_total: moduleMetrics.modhost_metrics_failures_total,
  });
  const count = (change: string) => (event: ModuleEvent) =>
    counted.add("modhost_module_changes_total", 1, event.module, change);
  module.hook("module-loaded", count("load"));
  module.hook("module-reloaded", count("reload"));
  module.hook("module-unloaded", count("unload"));

  const collect = (): MetricSample[] => {
    const states = module.modules();
    const byName = Map.groupBy(states, ({ name }) => name);
    const samples: MetricSample[] = statuses.map((status) => ({
      name: "modhost_modules",
      labels: { status },
      value: states.filter((state) => state.status === status).length,
    }));
    for (const [name, instances] of byName) {
      const isUp = instances.every(({ status }) => status === "loaded");
      samples.push({ name: "modhost_module_up", labels: { module: name }, value: isUp ? 1 : 0 });
      const holds = new Map<string, number>();
      for (const instance of instances) {
        for (const [kind, number] of Object.entries(instance.holds)) holds.set(kind, (holds.get(kind) ?? 0) + number);
      }
      for (const [kind, value] of holds) {
        samples.push({ name: "modhost_module_items", labels: { module: name, kind }, value });
      }
    }
    return [...samples, ...counted.collect()];
  };
  return {
    provider: { metrics: moduleMetrics, collect },
    failed: (name) => counted.add("modhost_metrics_failures_total", 1, name),
  };
}
