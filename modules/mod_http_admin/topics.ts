/** The topics of the server itself. */
import type { AdminTopic, Module } from "../../core/types.ts";
import type { Watched } from "./watched.ts";

/** Seconds between two events with metrics. */
const METRICS_INTERVAL = 1;

/** The topics for a listener that names none. */
export const defaultTopics = ["log", "requests", "figures", "changes"] as const;

export function ownTopics(
  { server }: Module,
  { history, requests }: Watched,
): Readonly<Record<(typeof defaultTopics)[number], AdminTopic>> {
  return {
    log: (emit) => server.follow_log(emit),
    requests: (emit) => requests.follow(emit),
    figures: (emit) => {
      const measure = history.currentMetrics();
      const timer = setInterval(() => emit(measure()), METRICS_INTERVAL * 1000).unref();
      return () => clearInterval(timer);
    },
    changes: (emit) => server.follow("server-changed", emit),
  };
}
