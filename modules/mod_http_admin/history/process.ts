/** Measures the process, and its load since the previous measurement. */
import { getHeapStatistics } from "node:v8";

export interface ProcessMetrics {
  /** Share of one core, from 0. */
  readonly cpu: number;
  /** Share of the time in which the event loop was busy, from 0 to 1. */
  readonly event_loop: number;
  /** Memory of the process in bytes. */
  readonly rss: number;
  /** Used heap of V8 in bytes. */
  readonly heap: number;
}

/** Returns a function. Each call of it measures the time since the previous call. */
export function processMeter(): () => ProcessMetrics {
  let loop = performance.eventLoopUtilization();
  let cpu = process.cpuUsage();
  let at = performance.now();
  return () => {
    const lastCpu = cpu;
    const lastAt = at;
    const busy = performance.eventLoopUtilization(loop).utilization;
    loop = performance.eventLoopUtilization();
    cpu = process.cpuUsage();
    at = performance.now();
    const used = (cpu.user - lastCpu.user + cpu.system - lastCpu.system) / 1000;
    return {
      cpu: rounded(used / Math.max(1, at - lastAt)),
      event_loop: rounded(busy),
      rss: process.memoryUsage.rss(),
      heap: getHeapStatistics().used_heap_size,
    };
  };
}

/** Rounds to three decimals. The measurements are not more precise. */
export const rounded = (value: number) => Math.round(value * 1000) / 1000;
