/** Metrics of a store that several hosts share: the requests to it, and their costs. */
import type { MetricDeclarations, MetricSample } from "../../../core/types.ts";
import type { SharedStoreMetrics } from "../storage/shared/metrics.ts";

export const storeMetrics = {
  modhost_node_store_available: {
    kind: "gauge",
    help: "Whether the shared store is fully available: 1, or 0.",
  },
  modhost_node_store_requests_total: {
    kind: "counter",
    help: "Requests to the object store, including repeated ones.",
    labels: ["kind"],
  },
  modhost_node_store_retries_total: {
    kind: "counter",
    help: "Repeated requests to the object store.",
    labels: ["kind"],
  },
  modhost_node_store_errors_total: {
    kind: "counter",
    help: "Requests to the object store without a usable response.",
    labels: ["kind"],
  },
  modhost_node_store_request_seconds_total: {
    kind: "counter",
    unit: "seconds",
    help: "Time until the end of responses of the object store.",
    labels: ["kind"],
  },
  modhost_node_store_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of objects sent to and received from the object store.",
    labels: ["direction"],
  },
  modhost_node_store_round_trips_total: { kind: "counter", help: "Round trips to the database." },
  modhost_node_store_database_faults_total: {
    kind: "counter",
    help: "Lost and failed connections to the database.",
  },
  modhost_node_store_commits_total: { kind: "counter", help: "Commits of this host." },
  modhost_node_store_commit_calls_total: { kind: "counter", help: "Writes that these commits contain." },
  modhost_node_store_races_total: {
    kind: "counter",
    help: "Commits that were repeated because another host was faster.",
  },
  modhost_node_store_sessions_lost_total: {
    kind: "counter",
    help: "Number of times that this host lost its session and joined again.",
  },
  modhost_node_store_cache_bytes: {
    kind: "gauge",
    unit: "bytes",
    help: "Size of the cache of objects on this host's disk.",
  },
  modhost_node_store_block_reads_total: {
    kind: "counter",
    help: "Blocks that were read from that cache, or directly from the object store.",
    labels: ["source"],
  },
} as const satisfies MetricDeclarations;

export function* storeSamples(
  { requests, database, cache }: SharedStoreMetrics,
  isAvailable: boolean,
): Generator<MetricSample & { readonly name: keyof typeof storeMetrics }> {
  yield { name: "modhost_node_store_available", value: isAvailable ? 1 : 0 };
  const bytes = { out: 0, in: 0 };
  for (const [kind, counts] of Object.entries(requests)) {
    const labels = { kind };
    yield { name: "modhost_node_store_requests_total", labels, value: counts.requests };
    yield { name: "modhost_node_store_retries_total", labels, value: counts.retries };
    yield { name: "modhost_node_store_errors_total", labels, value: counts.errors };
    yield { name: "modhost_node_store_request_seconds_total", labels, value: counts.time / 1000 };
    bytes.out += counts.sent;
    bytes.in += counts.received;
  }
  for (const [direction, value] of Object.entries(bytes)) {
    yield { name: "modhost_node_store_bytes_total", labels: { direction }, value };
  }
  yield { name: "modhost_node_store_round_trips_total", value: database.roundTrips };
  yield { name: "modhost_node_store_database_faults_total", value: database.faults };
  yield { name: "modhost_node_store_commits_total", value: database.commits };
  yield { name: "modhost_node_store_commit_calls_total", value: database.calls };
  yield { name: "modhost_node_store_races_total", value: database.races };
  yield { name: "modhost_node_store_sessions_lost_total", value: database.sessionsLost };
  yield { name: "modhost_node_store_cache_bytes", value: cache.bytes };
  yield { name: "modhost_node_store_block_reads_total", labels: { source: "cache" }, value: cache.hits };
  yield { name: "modhost_node_store_block_reads_total", labels: { source: "store" }, value: cache.misses };
}
