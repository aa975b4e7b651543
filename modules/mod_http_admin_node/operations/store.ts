/** The operation that describes the store that several hosts share, as this host sees it. */
import type { NodeStore } from "../types.ts";
import { type Deps, nodeOperation } from "./operation.ts";

export const storeOperations = [
  nodeOperation({
    name: "node_store",
    method: "GET",
    path: "/node/store",
    scope: "read",
    help: "The store that this host shares with others: whether it can be reached, pending writes, and its requests",
    response: "NodeStore",
    run: ({ node }) => storeOf(node),
  }),
];

const KINDS = ["objects", "database"] as const;

function storeOf({ lowLevel }: Deps["node"]): NodeStore {
  const metrics = lowLevel.storeMetrics;
  if (metrics === undefined) return { is_shared: false };
  const { addresses, problems, cache, waiting, requests, database, lastCollection } = metrics;
  const kinds = Object.entries(requests).map(([kind, { requests: count, retries: repeated, errors: failed }]) => ({
    kind,
    count,
    repeated,
    failed,
  }));
  return {
    is_shared: true,
    engines: KINDS.map((kind) => ({
      kind,
      place: addresses[kind],
      ...(problems[kind] !== undefined && { problem: problems[kind] }),
    })),
    cache: { size: cache.bytes, limit: cache.max, hits: cache.hits, misses: cache.misses },
    waiting: { size: waiting.bytes, changes: waiting.calls },
    requests: kinds.filter(({ count }) => count > 0),
    commits: { count: database.commits, calls: database.calls, sessions_lost: database.sessionsLost },
    ...(lastCollection !== undefined && {
      last_gc: {
        time: new Date(lastCollection.at).toISOString(),
        ...(lastCollection.removed !== undefined && { removed: lastCollection.removed }),
      },
    }),
  };
}
