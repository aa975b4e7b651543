/** The state of a process, for the primary and for metrics. */
import type { Host } from "../host.ts";
import type { HttpModule } from "../http/index.ts";
import type { WorkerState } from "./messages.ts";

/** Returns what the module http exports; undefined if it is not loaded. */
export function httpOf(host: Host | undefined): HttpModule | undefined {
  const isLoaded = host?.modules().some(({ name, status }) => name === "http" && status === "loaded");
  return isLoaded === true ? host?.exports<HttpModule>("http") : undefined;
}

export function stateOf(number: number, host: Host | undefined): WorkerState {
  const { user, system } = process.cpuUsage();
  return {
    number,
    pid: process.pid,
    connections: host?.connections() ?? 0,
    requests: httpOf(host)?.active() ?? [],
    failed: host?.modules().flatMap(({ name, status }) => (status === "loaded" ? [] : [name])) ?? [],
    cpu: (user + system) / 1e6,
    memory: process.memoryUsage.rss(),
  };
}
