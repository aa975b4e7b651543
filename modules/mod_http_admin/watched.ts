import type { History } from "./history/index.ts";
import type { RecentRequests } from "./recent_requests.ts";

/** What this module keeps while it is loaded. */
export interface Watched {
  readonly history: History;
  readonly requests: RecentRequests;
}
