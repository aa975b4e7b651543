/** The process and its event loop, under the names that clients of Prometheus give to them. */
import { readdirSync, readFileSync } from "node:fs";
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from "node:perf_hooks";
import { createFigures } from "../../core/index.ts";
import type { MetricDeclarations, MetricSample, MetricsProvider, Module } from "../../core/types.ts";

export const processMetrics = {
  process_cpu_seconds_total: { kind: "counter", unit: "seconds", help: "CPU time of the process, user and system." },
  process_start_time_seconds: { kind: "gauge", unit: "seconds", help: "When the process began, since 1970." },
  process_resident_memory_bytes: { kind: "gauge", unit: "bytes", help: "Memory of the process that is resident." },
  process_virtual_memory_bytes: { kind: "gauge", unit: "bytes", help: "Address space of the process." },
  process_open_fds: { kind: "gauge", help: "Open file descriptors." },
  process_max_fds: { kind: "gauge", help: "File descriptors that may be open." },
  nodejs_version_info: { kind: "gauge", help: "The version of Node.js.", labels: ["version"] },
  nodejs_heap_size_total_bytes: { kind: "gauge", unit: "bytes", help: "The JavaScript heap." },
  nodejs_heap_size_used_bytes: { kind: "gauge", unit: "bytes", help: "What is used of the JavaScript heap." },
  nodejs_external_memory_bytes: { kind: "gauge", unit: "bytes", help: "Memory that JavaScript objects hold outside." },
  nodejs_array_buffers_bytes: { kind: "gauge", unit: "bytes", help: "Memory of buffers, part of the external." },
  nodejs_active_resources: {
    kind: "gauge",
    help: "What keeps the event loop alive, by its type.",
    labels: ["type"],
    max_series: 100,
  },
  nodejs_eventloop_active_seconds_total: {
    kind: "counter",
    unit: "seconds",
    help: "Time in which the event loop was busy.",
  },
  nodejs_eventloop_idle_seconds_total: {
    kind: "counter",
    unit: "seconds",
    help: "Time in which the event loop waited.",
  },
  nodejs_eventloop_lag_p50_seconds: { kind: "gauge", unit: "seconds", help: "Delay of the event loop, median." },
  nodejs_eventloop_lag_p99_seconds: {
    kind: "gauge",
    unit: "seconds",
    help: "Delay of the event loop, 99th percentile.",
  },
  nodejs_eventloop_lag_max_seconds: { kind: "gauge", unit: "seconds", help: "The longest delay of the event loop." },
  modhost_info: { kind: "gauge", help: "The version of the host.", labels: ["version"] },
} as const satisfies MetricDeclarations;

export const gcMetrics = {
  nodejs_gc_duration_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "Garbage collections, by their kind.",
    labels: ["kind"],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
  },
} as const satisfies MetricDeclarations;

/** The delay is looked at in such steps, milliseconds. */
const RESOLUTION = 20;
/** Delays are of the time since a look that is at least so many seconds ago: several who look do not disturb each other. */
const MIN_WINDOW = 10;

/** Figures of the process, watched for as long as the module is there. */
export function processFigures(module: Module, version: string): MetricsProvider {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  let since = performance.now();
  module.on_release("delay of the event loop", () => delay.disable(), "watch");
  const maxFds = maxDescriptors();
  const started = performance.timeOrigin / 1000;

  const lag = (): MetricSample[] => {
    // What is measured is the time between two looks of its own.
    const over = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - RESOLUTION / 1000);
    const isEmpty = delay.count === 0;
    const samples = [
      { name: "nodejs_eventloop_lag_p50_seconds", value: isEmpty ? 0 : over(delay.percentile(50)) },
      { name: "nodejs_eventloop_lag_p99_seconds", value: isEmpty ? 0 : over(delay.percentile(99)) },
      { name: "nodejs_eventloop_lag_max_seconds", value: isEmpty ? 0 : over(delay.max) },
    ];
    if (performance.now() - since > MIN_WINDOW * 1000) {
      delay.reset();
      since = performance.now();
    }
    return samples;
  };

  const collect = (): MetricSample[] => {
    const { user, system } = process.cpuUsage();
    const memory = process.memoryUsage();
    const loop = performance.eventLoopUtilization();
    const resources = Map.groupBy(process.getActiveResourcesInfo(), (type) => type);
    return [
      { name: "process_cpu_seconds_total", value: (user + system) / 1e6 },
      { name: "process_start_time_seconds", value: started },
      { name: "process_resident_memory_bytes", value: memory.rss },
      { name: "nodejs_version_info", labels: { version: process.version }, value: 1 },
      { name: "nodejs_heap_size_total_bytes", value: memory.heapTotal },
      { name: "nodejs_heap_size_used_bytes", value: memory.heapUsed },
      { name: "nodejs_external_memory_bytes", value: memory.external },
      { name: "nodejs_array_buffers_bytes", value: memory.arrayBuffers },
      { name: "nodejs_eventloop_active_seconds_total", value: loop.active / 1000 },
      { name: "nodejs_eventloop_idle_seconds_total", value: loop.idle / 1000 },
      { name: "modhost_info", labels: { version }, value: 1 },
      ...[...resources].map(([type, all]) => ({
        name: "nodejs_active_resources",
        labels: { type },
        value: all.length,
      })),
      ...lag(),
      ...systemFacts(maxFds),
    ];
  };
  return { metrics: processMetrics, collect };
}

/** Garbage collections, watched for as long as the module is there. */
export function gcFigures(module: Module): MetricsProvider {
  const figures = createFigures(gcMetrics);
  const kinds: Readonly<Record<number, string>> = {
    [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
    [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
    [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
    [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weakcb",
  };
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as unknown as { detail: { kind: number } }).detail;
      figures.observe("nodejs_gc_duration_seconds", entry.duration / 1000, kinds[kind] ?? "other");
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  module.on_release("garbage collections", () => observer.disconnect(), "watch");
  return figures;
}

/** What only the system knows; left out where it does not say. */
function systemFacts(maxFds: number | undefined): MetricSample[] {
  const samples: MetricSample[] = [];
  if (maxFds !== undefined) samples.push({ name: "process_max_fds", value: maxFds });
  try {
    const [pages = ""] = readFileSync("/proc/self/statm", "utf8").split(" ");
    samples.push({ name: "process_virtual_memory_bytes", value: Number(pages) * 4096 });
    // Reading the folder has it open itself.
    samples.push({ name: "process_open_fds", value: readdirSync("/proc/self/fd").length - 1 });
  } catch {} // There is no /proc.
  return samples;
}

function maxDescriptors(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
