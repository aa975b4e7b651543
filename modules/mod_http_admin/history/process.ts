/** The process as it is, and what it did since the look before. */
import { getHeapStatistics } from "node:v8";

export interface ProcessFigures {
  /** Share of one core. */
  readonly cpu: number;
  /** Share of the time in which the event loop was busy. */
  readonly event_loop: number;
  /** Bytes. */
  readonly rss: number;
  /** Bytes. */
  readonly heap: number;
}

/** Each call tells of the time since the one before. */
export function processMeter(): () => ProcessFigures {
  let loop = performance.eventLoopUtilization();
  let cpu = process.cpuUsage();
  let at = performance.now();
  return () => {
    const [lastCpu, lastAt] = [cpu, at];
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

/** To three digits behind the point: more say nothing of what was measured. */
export const rounded = (value: number) => Math.round(value * 1000) / 1000;
