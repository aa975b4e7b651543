/** The figures of a store that several hosts share: what it is asked for, and what it costs. */
import type { MetricDeclarations, MetricSample } from "../../core/types.ts";
import type { SharedFigures } from "./storage/shared/figures.ts";

export const sharedMetrics = {
  modhost_node_store_available: {
    kind: "gauge",
    help: "Whether the shared store can do all that is asked: 1, or 0.",
  },
  modhost_node_store_requests_total: {
    kind: "counter",
    help: "Requests to the object store, repeated ones as well.",
    labels: ["kind"],
  },
  modhost_node_store_retries_total: {
    kind: "counter",
    help: "Requests to the object store that repeat another.",
    labels: ["kind"],
  },
  modhost_node_store_errors_total: {
    kind: "counter",
    help: "Requests to the object store without a usable answer.",
    labels: ["kind"],
  },
  modhost_node_store_request_seconds_total: {
    kind: "counter",
    unit: "seconds",
    help: "Time until the end of the answers of the object store.",
    labels: ["kind"],
  },
  modhost_node_store_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of objects, to and from the object store.",
    labels: ["direction"],
  },
  modhost_node_store_round_trips_total: { kind: "counter", help: "Questions to the database." },
  modhost_node_store_database_faults_total: {
    kind: "counter",
    help: "Connections to the database that were lost or could not be made.",
  },
  modhost_node_store_commits_total: { kind: "counter", help: "Commits of this host." },
  modhost_node_store_commit_calls_total: { kind: "counter", help: "Writes that those commits were for." },
  modhost_node_store_races_total: {
    kind: "counter",
    help: "Commits that were calculated again, as another host was faster.",
  },
  modhost_node_store_sessions_lost_total: {
    kind: "counter",
    help: "How often this host was away too long, and joined anew.",
  },
  modhost_node_store_cache_bytes: { kind: "gauge", unit: "bytes", help: "The cache of objects on this host's disk." },
  modhost_node_store_block_reads_total: {
    kind: "counter",
    help: "Blocks that were read from that cache, or past it from the object store.",
    labels: ["source"],
  },
} as const satisfies MetricDeclarations;

export function* sharedSamples(
  { requests, database, cache }: SharedFigures,
  isAvailable: boolean,
): Generator<MetricSample & { readonly name: keyof typeof sharedMetrics }> {
  yield { name: "modhost_node_store_available", value: isAvailable ? 1 : 0 };
  const bytes = { out: 0, in: 0 };
  for (const [kind, figures] of Object.entries(requests)) {
    const labels = { kind };
    yield { name: "modhost_node_store_requests_total", labels, value: figures.requests };
    yield { name: "modhost_node_store_retries_total", labels, value: figures.retries };
    yield { name: "modhost_node_store_errors_total", labels, value: figures.errors };
    yield { name: "modhost_node_store_request_seconds_total", labels, value: figures.time / 1000 };
    bytes.out += figures.sent;
    bytes.in += figures.received;
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
