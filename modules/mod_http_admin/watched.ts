import type { Module } from "../../core/types.ts";
import type { History } from "./history/index.ts";
import type { RecentRequests } from "./recent_requests.ts";

/** The state of this module while it is loaded. */
export interface Watched {
  readonly history: History;
  readonly requests: RecentRequests;
}

interface Saved {
  readonly history?: ReturnType<History["save"]>;
  readonly requests?: ReturnType<RecentRequests["save"]>;
}

/**
 * After a reload, and in another process that takes over, the history and the requests continue.
 */
export function keepPast(module: Module, { history, requests }: Watched): void {
  module.save = (): Saved => ({ history: history.save(), requests: requests.save() });
  module.restore = (saved: unknown) => {
    const past = (saved ?? {}) as Saved;
    history.restore(past.history);
    requests.restore(past.requests);
  };
}
