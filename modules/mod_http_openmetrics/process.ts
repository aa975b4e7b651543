/**
 * Metrics of the process and its event loop, under the names that Prometheus client libraries use.
 */
import { readdirSync, readFileSync } from "node:fs";
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from "node:perf_hooks";
import { setImmediate as immediate } from "node:timers/promises";
import { getHeapSpaceStatistics } from "node:v8";
import { createMetrics } from "../../core/index.ts";
import type { MetricDeclarations, MetricSample, MetricsProvider, Module } from "../../core/types.ts";

const SPACE = { kind: "gauge", unit: "bytes", labels: ["space"] } as const;
/** The highest value of all processes counts. */
const LAG = { kind: "gauge", unit: "seconds", processes: "max" } as const;
const TYPED = { kind: "gauge", labels: ["type"], max_series: 100 } as const;

/**
 * Names, labels and buckets are those of `collectDefaultMetrics` in prom-client, so that existing
 * dashboards for Node.js work.
 */
export const processMetrics = {
  process_cpu_seconds_total: { kind: "counter", unit: "seconds", help: "CPU time of the process, user and system." },
  process_cpu_user_seconds_total: { kind: "counter", unit: "seconds", help: "CPU time of the process, user." },
  process_cpu_system_seconds_total: { kind: "counter", unit: "seconds", help: "CPU time of the process, system." },
  process_start_time_seconds: {
    kind: "gauge",
    unit: "seconds",
    processes: "max",
    help: "When the process started, in seconds since 1970.",
  },
  process_resident_memory_bytes: { kind: "gauge", unit: "bytes", help: "Resident memory of the process." },
  process_virtual_memory_bytes: { kind: "gauge", unit: "bytes", help: "Address space of the process." },
  process_heap_bytes: { kind: "gauge", unit: "bytes", help: "Data segment of the process." },
  process_open_fds: { kind: "gauge", help: "Open file descriptors." },
  process_max_fds: { kind: "gauge", help: "Maximum number of open file descriptors." },
  nodejs_version_info: {
    kind: "gauge",
    processes: "max",
    help: "The version of Node.js.",
    labels: ["version", "major", "minor", "patch"],
  },
  nodejs_heap_size_total_bytes: { kind: "gauge", unit: "bytes", help: "Size of the JavaScript heap." },
  nodejs_heap_size_used_bytes: { kind: "gauge", unit: "bytes", help: "Used part of the JavaScript heap." },
  nodejs_heap_space_size_total_bytes: { ...SPACE, help: "Size of each space of the JavaScript heap." },
  nodejs_heap_space_size_used_bytes: { ...SPACE, help: "Used part of each space of the JavaScript heap." },
  nodejs_heap_space_size_available_bytes: { ...SPACE, help: "Free part of each space of the JavaScript heap." },
  nodejs_external_memory_bytes: {
    kind: "gauge",
    unit: "bytes",
    help: "Memory outside of the heap that JavaScript objects use.",
  },
  nodejs_array_buffers_bytes: {
    kind: "gauge",
    unit: "bytes",
    help: "Memory of buffers, as a part of the external memory.",
  },
  nodejs_active_resources: { ...TYPED, help: "Resources that keep the event loop alive, by their type." },
  nodejs_active_resources_total: { kind: "gauge", help: "Resources that keep the event loop alive." },
  nodejs_active_handles: { ...TYPED, help: "Handles of libuv that keep the event loop alive, by their class." },
  nodejs_active_handles_total: { kind: "gauge", help: "Handles of libuv that keep the event loop alive." },
  nodejs_active_requests: { ...TYPED, help: "Requests to libuv that are in progress, by their class." },
  nodejs_active_requests_total: { kind: "gauge", help: "Requests to libuv that are in progress." },
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
  nodejs_eventloop_lag_seconds: { ...LAG, help: "Delay of the event loop, measured when the metrics are read." },
  nodejs_eventloop_lag_min_seconds: { ...LAG, help: "The shortest delay of the event loop." },
  nodejs_eventloop_lag_max_seconds: { ...LAG, help: "The longest delay of the event loop." },
  nodejs_eventloop_lag_mean_seconds: { ...LAG, help: "Delay of the event loop, mean." },
  nodejs_eventloop_lag_stddev_seconds: { ...LAG, help: "Delay of the event loop, standard deviation." },
  nodejs_eventloop_lag_p50_seconds: { ...LAG, help: "Delay of the event loop, median." },
  nodejs_eventloop_lag_p90_seconds: { ...LAG, help: "Delay of the event loop, 90th percentile." },
  nodejs_eventloop_lag_p99_seconds: { ...LAG, help: "Delay of the event loop, 99th percentile." },
  modhost_info: { kind: "gauge", processes: "max", help: "The version of the host.", labels: ["version"] },
} as const satisfies MetricDeclarations;

export const gcMetrics = {
  nodejs_gc_duration_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "Garbage collections, by their kind.",
    labels: ["kind"],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5],
  },
} as const satisfies MetricDeclarations;

/** Resolution of the delay measurement in milliseconds. */
const RESOLUTION = 20;
/**
 * Minimum period in seconds that the delays cover. So several readers do not disturb each other's
 * measurements.
 */
const MIN_WINDOW = 10;

/** Provides metrics of the process, measured while the module is loaded. */
export function processMetricsProvider(module: Module, version: string): MetricsProvider {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  let since = performance.now();
  module.on_release("delay of the event loop", () => delay.disable(), "watch");
  const maxFds = maxDescriptors();
  const started = performance.timeOrigin / 1000;

  const lag = (): MetricSample[] => {
    // The histogram measures the time between two of its own ticks, which includes the resolution.
    const over = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - RESOLUTION / 1000);
    const values = {
      min: over(delay.min),
      max: over(delay.max),
      mean: over(delay.mean),
      stddev: delay.stddev / 1e9,
      p50: over(delay.percentile(50)),
      p90: over(delay.percentile(90)),
      p99: over(delay.percentile(99)),
    };
    const isEmpty = delay.count === 0;
    if (performance.now() - since > MIN_WINDOW * 1000) {
      delay.reset();
      since = performance.now();
    }
    return Object.entries(values).map(([name, value]) => ({
      name: `nodejs_eventloop_lag_${name}_seconds`,
      value: isEmpty ? 0 : value,
    }));
  };

  const collect = async (): Promise<MetricSample[]> => {
    const startedAt = performance.now();
    await immediate();
    const lagNow = (performance.now() - startedAt) / 1000;
    const { user, system } = process.cpuUsage();
    const memory = process.memoryUsage();
    const loop = performance.eventLoopUtilization();
    const [major = "", minor = "", patch = ""] = process.versions.node.split(".");
    return [
      { name: "process_cpu_seconds_total", value: (user + system) / 1e6 },
      { name: "process_cpu_user_seconds_total", value: user / 1e6 },
      { name: "process_cpu_system_seconds_total", value: system / 1e6 },
      { name: "process_start_time_seconds", value: started },
      { name: "process_resident_memory_bytes", value: memory.rss },
      { name: "nodejs_version_info", labels: { version: process.version, major, minor, patch }, value: 1 },
      { name: "nodejs_heap_size_total_bytes", value: memory.heapTotal },
      { name: "nodejs_heap_size_used_bytes", value: memory.heapUsed },
      { name: "nodejs_external_memory_bytes", value: memory.external },
      { name: "nodejs_array_buffers_bytes", value: memory.arrayBuffers },
      { name: "nodejs_eventloop_active_seconds_total", value: loop.active / 1000 },
      { name: "nodejs_eventloop_idle_seconds_total", value: loop.idle / 1000 },
      { name: "nodejs_eventloop_lag_seconds", value: lagNow },
      { name: "modhost_info", labels: { version }, value: 1 },
      ...heapSpaces(),
      ...activeThings(),
      ...lag(),
      ...systemFacts(maxFds),
    ];
  };
  return { metrics: processMetrics, collect };
}

function heapSpaces(): MetricSample[] {
  return getHeapSpaceStatistics().flatMap(({ space_name, space_size, space_used_size, space_available_size }) => {
    const labels = { space: space_name.replace(/_space$/, "") };
    return [
      { name: "nodejs_heap_space_size_total_bytes", labels, value: space_size },
      { name: "nodejs_heap_space_size_used_bytes", labels, value: space_used_size },
      { name: "nodejs_heap_space_size_available_bytes", labels, value: space_available_size },
    ];
  });
}

/** Only these undocumented functions of Node.js return handles and requests. */
const { _getActiveHandles: handles, _getActiveRequests: requests } = process as unknown as Partial<
  Record<"_getActiveHandles" | "_getActiveRequests", () => object[]>
>;

function activeThings(): MetricSample[] {
  const classes = (all: readonly object[] = []) => all.map((each) => each.constructor?.name ?? typeof each);
  const lists = {
    resources: process.getActiveResourcesInfo(),
    handles: classes(handles?.call(process)),
    requests: classes(requests?.call(process)),
  };
  return Object.entries(lists).flatMap(([what, types]) => {
    const name = `nodejs_active_${what}`;
    const byType = [...Map.groupBy(types, (type) => type)];
    return [
      ...byType.map(([type, all]) => ({ name, labels: { type }, value: all.length })),
      { name: `${name}_total`, value: types.length },
    ];
  });
}

/** Provides metrics of garbage collections, counted while the module is loaded. */
export function gcProvider(module: Module): MetricsProvider {
  const series = createMetrics(gcMetrics);
  const kinds: Readonly<Record<number, string>> = {
    [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
    [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
    [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
    [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weakcb",
  };
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as unknown as { detail: { kind: number } }).detail;
      series.observe("nodejs_gc_duration_seconds", entry.duration / 1000, kinds[kind] ?? "other");
    }
  });
  observer.observe({ entryTypes: ["gc"] });
  module.on_release("garbage collections", () => observer.disconnect(), "watch");
  return series;
}

/** Returns samples that only the operating system knows. Unknown values are left out. */
function systemFacts(maxFds: number | undefined): MetricSample[] {
  const samples: MetricSample[] = [];
  if (maxFds !== undefined) samples.push({ name: "process_max_fds", value: maxFds });
  try {
    const status = readFileSync("/proc/self/status", "utf8");
    for (const [name, field] of [
      ["process_virtual_memory_bytes", "VmSize"],
      ["process_heap_bytes", "VmData"],
    ] as const) {
      const [, kibibytes] = new RegExp(`^${field}:\\s*(\\d+) kB$`, "m").exec(status) ?? [];
      if (kibibytes !== undefined) samples.push({ name, value: Number(kibibytes) * 1024 });
    }
    // Reading the folder opens one more descriptor, which is subtracted.
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
