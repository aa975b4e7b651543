/** Figures of the RPC: commands by their name in the table. */
import { createFigures } from "../../../core/index.ts";
import type { MetricDeclarations } from "../../../core/types.ts";

export const commandMetrics = {
  modhost_rpc_commands_total: {
    kind: "counter",
    help: "Commands that have finished, well (ok) or not (error).",
    labels: ["command", "outcome"],
  },
  modhost_rpc_command_duration_seconds: {
    kind: "histogram",
    unit: "seconds",
    help: "Time from the call of a command to the end of its output.",
    labels: ["command"],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300],
  },
  modhost_rpc_commands_running: { kind: "gauge", help: "Commands that run now." },
  ipfs_http_requests_total: {
    kind: "counter",
    help: "Requests by their method and status: those of the API, and those of the read-only one (gateway).",
    labels: ["method", "code", "handler"],
  },
} as const satisfies MetricDeclarations;

/** One command that runs. */
export interface CountedCommand {
  failed(): void;
  /** What is said after the first call counts no more. */
  over(): void;
}

export type CommandFigures = ReturnType<typeof commandFigures>;

export function commandFigures() {
  const figures = createFigures(commandMetrics);
  const running = figures.series("modhost_rpc_commands_running");
  return {
    provider: figures,
    /** `command` is its path in the table. */
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
          figures.add("modhost_rpc_commands_total", 1, command, outcome);
          figures.observe("modhost_rpc_command_duration_seconds", (performance.now() - began) / 1000, command);
        },
      };
    },
    answered(method: string, code: number, handler: "api" | "gateway"): void {
      figures.add("ipfs_http_requests_total", 1, method.toLowerCase(), String(code), handler);
    },
  };
}
