/** The topics of the server itself. */
import { getHeapStatistics } from "node:v8";
import type { AdminTopic, HttpFinishedEvent, Module } from "../../core/types.ts";

/** Seconds between figures. */
const FIGURES_INTERVAL = 1;

/** Those that a listener gets who names none. */
export const defaultTopics = ["log", "requests", "figures", "changes"] as const;

export function ownTopics(module: Module): Readonly<Record<(typeof defaultTopics)[number], AdminTopic>> {
  const { server } = module;
  return {
    log: (tell) => server.follow_log(tell),
    requests: (tell) => server.follow("http-finished", (event) => tell(requestOf(event))),
    figures: (tell) => {
      const figures = figuresOf(module);
      const timer = setInterval(() => tell(figures()), FIGURES_INTERVAL * 1000).unref();
      return () => clearInterval(timer);
    },
    changes: (tell) => server.follow("server-changed", tell),
  };
}

/** Query strings carry secrets: they are left out. */
function requestOf({ request, status, bytes, duration, complete, app }: HttpFinishedEvent) {
  const { id, method, url, ip, host } = request;
  const rounded = Math.round(duration * 10) / 10;
  return { id, method, path: url.raw_path, host, ip, app, status, bytes, duration: rounded, complete };
}

/** The process as it is, and what it did since the figures before. */
function figuresOf(module: Module): () => object {
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
    const { connections, requests, modules } = module.server.status();
    return {
      time: new Date().toISOString(),
      cpu: round(used / (at - lastAt)),
      event_loop: round(busy),
      rss: process.memoryUsage.rss(),
      heap: getHeapStatistics().used_heap_size,
      connections,
      requests: requests.length,
      modules: modules.length,
    };
  };
}

const round = (value: number) => Math.round(value * 1000) / 1000;
