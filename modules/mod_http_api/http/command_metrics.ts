/** Metrics of the RPC, with commands labelled by their name in the table. */
import { createMetrics } from "../../../core/index.ts";
import type { MetricDeclarations } from "../../../core/types.ts";

export const commandMetricDeclarations = {
  modhost_rpc_commands_total: {
    kind: "counter",
    help: "Number of finished commands, by result (ok or error).",
    labels: ["command", "outcome"],
  },
  modhost_rpc_command_duration_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "Time from the call of a command to the end of its output.",
    labels: ["command"],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300],
  },
  modhost_rpc_commands_running: { kind: "gauge", help: "Number of running commands." },
  ipfs_http_requests_total: {
    kind: "counter",
    help: "Number of requests by method and status: to the API, and to its read-only commands (gateway).",
    labels: ["method", "code", "handler"],
  },
} as const satisfies MetricDeclarations;

/** One running command. */
export interface CountedCommand {
  failed(): void;
  /** Ends the measurement. Later calls have no effect. */
  over(): void;
}

export type CommandMetrics = ReturnType<typeof createCommandMetrics>;

export function createCommandMetrics() {
  const metrics = createMetrics(commandMetricDeclarations);
  const running = metrics.series("modhost_rpc_commands_running");
  return {
    provider: metrics,
    /** `command` is the path of the command in the table. */
    begin(command: string): CountedCommand {
      const began = performance.now();
      let outcome = "ok";
      let isOver = false;
      running.add(1);
      return {
        failed() {
          outcome = "error";
        },
        over() {
          if (isOver) return;
          isOver = true;
          running.add(-1);
          metrics.add("modhost_rpc_commands_total", 1, command, outcome);
          metrics.observe("modhost_rpc_command_duration_seconds", (performance.now() - began) / 1000, command);
        },
      };
    },
    countResponse(method: string, code: number, handler: "api" | "gateway"): void {
      metrics.add("ipfs_http_requests_total", 1, method.toLowerCase(), String(code), handler);
    },
  };
}
