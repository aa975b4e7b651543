/** The topics of the server itself. */
import type { AdminTopic, Module } from "../../core/types.ts";
import type { Watched } from "./watched.ts";

/** Seconds between figures. */
const FIGURES_INTERVAL = 1;

/** Those that a listener gets who names none. */
export const defaultTopics = ["log", "requests", "figures", "changes"] as const;

export function ownTopics(
  { server }: Module,
  { history, requests }: Watched,
): Readonly<Record<(typeof defaultTopics)[number], AdminTopic>> {
  return {
    log: (tell) => server.follow_log(tell),
    requests: (tell) => requests.follow(tell),
    figures: (tell) => {
      const figures = history.figures();
      const timer = setInterval(() => tell(figures()), FIGURES_INTERVAL * 1000).unref();
      return () => clearInterval(timer);
    },
    changes: (tell) => server.follow("server-changed", tell),
  };
}
