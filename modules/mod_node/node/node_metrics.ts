/** The metrics of a node for dashboards: its repo, its exchange of blocks and its network. */
import type { MetricDeclarations, MetricSample } from "../../../core/types.ts";
import { blockSizeBounds } from "../network/bitswap/block_sizes.ts";
import type { Network } from "../network/network.ts";
import { Remembered } from "../util/async/remembered.ts";
import { versionFacts } from "../util/version.ts";
import type { LowLevelNode } from "./low_level_node.ts";
import { storeMetrics, storeSamples } from "./store_metrics.ts";

const sizes = { kind: "histogram", unit: "bytes", buckets: blockSizeBounds } as const;

/** Names that begin with `ipfs_` are those of go-ipfs, with the same labels. */
export const nodeMetrics = {
  ipfs_info: { kind: "gauge", help: "The version of go-ipfs whose API this is.", labels: ["version", "commit"] },
  ipfs_p2p_peers_total: {
    kind: "gauge",
    help: "Connected peers, by the protocols of the address of their first connection.",
    labels: ["transport"],
    max_series: 50,
  },
  ipfs_bitswap_recv_all_blocks_bytes: { ...sizes, help: "Blocks received, by size." },
  ipfs_bitswap_recv_dup_blocks_bytes: { ...sizes, help: "Blocks received that were stored already, by size." },
  ipfs_bitswap_sent_all_blocks_bytes: { ...sizes, help: "Blocks sent, by size." },
  ipfs_bitswap_wantlist_total: { kind: "gauge", help: "Blocks that this node wants." },
  modhost_node_online: { kind: "gauge", help: "Whether the node is on the network: 1, or 0." },
  modhost_node_repo_size_bytes: { kind: "gauge", unit: "bytes", help: "Bytes that the stores use on disk." },
  modhost_node_repo_limit_bytes: { kind: "gauge", unit: "bytes", help: "Datastore.StorageMax." },
  modhost_node_blocks: { kind: "gauge", help: "Number of stored blocks." },
  modhost_node_pins: { kind: "gauge", help: "Pins, by mode.", labels: ["mode"] },
  modhost_node_block_reads_total: {
    kind: "counter",
    help: "Blocks that were read: from the local store, from peers, or not found.",
    labels: ["source"],
  },
  modhost_node_damaged_blocks_total: {
    kind: "counter",
    help: "Blocks whose stored copies were missing or damaged when they were read.",
  },
  modhost_node_added_files_total: { kind: "counter", help: "Added files." },
  modhost_node_added_bytes_total: { kind: "counter", unit: "bytes", help: "Bytes of the DAGs of added files." },
  modhost_node_gc_runs_total: { kind: "counter", help: "Garbage collections." },
  modhost_node_gc_failed_total: { kind: "counter", help: "Failed garbage collections." },
  modhost_node_gc_removed_blocks_total: { kind: "counter", help: "Blocks that garbage collections removed." },
  modhost_node_gc_seconds_total: { kind: "counter", unit: "seconds", help: "Time spent in garbage collections." },
  modhost_node_bitswap_blocks_total: { kind: "counter", help: "Blocks exchanged.", labels: ["direction"] },
  modhost_node_bitswap_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of blocks exchanged.",
    labels: ["direction"],
  },
  modhost_node_bitswap_duplicates_total: { kind: "counter", help: "Blocks received that were stored already." },
  modhost_node_bitswap_unwanted_total: { kind: "counter", help: "Blocks received that were not requested." },
  modhost_node_bitswap_messages_total: { kind: "counter", help: "Messages received." },
  modhost_node_bitswap_malformed_total: { kind: "counter", help: "Malformed messages received." },
  modhost_node_bitswap_refused_wants_total: { kind: "counter", help: "Wants of peers above their limits." },
  modhost_node_bitswap_partners: { kind: "gauge", help: "Connected peers that speak bitswap." },
  modhost_node_http_sources: { kind: "gauge", help: "Gateways that blocks are fetched from over HTTP." },
  modhost_node_http_source_requests_total: {
    kind: "counter",
    help: "Requests for blocks over HTTP, by outcome.",
    labels: ["result"],
  },
  modhost_node_http_source_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of blocks received over HTTP, which the bytes of bitswap include.",
  },
  modhost_node_connections: { kind: "gauge", help: "Connections to peers.", labels: ["direction"] },
  modhost_node_network_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of all streams.",
    labels: ["direction"],
  },
  modhost_node_protocol_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of streams, by protocol.",
    labels: ["protocol", "direction"],
  },
  modhost_node_dht_peers: { kind: "gauge", help: "Peers in the routing tables of the DHT.", labels: ["table"] },
  modhost_node_provides_total: { kind: "counter", help: "Blocks announced to the routing system." },
  modhost_node_provide_queue: { kind: "gauge", help: "Blocks that are queued to be announced." },
  modhost_node_provide_keys: { kind: "gauge", help: "Blocks that are announced regularly by region." },
  modhost_node_provide_regions: { kind: "gauge", help: "Regions of the key space that contain blocks to announce." },
  modhost_node_provide_behind_seconds: {
    kind: "gauge",
    unit: "seconds",
    help: "Delay of the most overdue region, while there are peers.",
  },
  modhost_node_provide_records_total: {
    kind: "counter",
    help: "Provider records that peers accepted in announcements by region.",
  },
  modhost_node_provide_failed_total: {
    kind: "counter",
    help: "Blocks that no peer accepted in an announcement by region.",
  },
  ...storeMetrics,
} as const satisfies MetricDeclarations;

/** The metrics of a node, in the form that `module.provides("metrics")` accepts. */
export interface NodeMetrics {
  readonly metrics: MetricDeclarations;
  /**
   * Resolves to the current values. Counters start when the node is opened. Values that are
   * expensive to count may be a minute old.
   */
  collect(): Promise<MetricSample[]>;
}

type Name = keyof typeof nodeMetrics;

/** Milliseconds for which expensive counts are reused. */
const MAX_AGE_MS = 60_000;
/** Milliseconds to wait for an expensive count; after that the previous value is used. */
const MAX_WAIT_MS = 1000;
/**
 * Maximum number of protocols with metrics of their own. Peers cannot add protocols, but local
 * programs can.
 */
const MAX_PROTOCOLS = 40;

export function metricsOf(node: LowLevelNode): NodeMetrics {
  const stat = new Remembered(() => node.stat(), MAX_AGE_MS, MAX_WAIT_MS);
  const pins = new Remembered(() => countPins(node), MAX_AGE_MS, MAX_WAIT_MS);
  return {
    metrics: nodeMetrics,
    async collect() {
      const samples = new Samples();
      const { version, commit } = versionFacts();
      samples.add("ipfs_info", 1, { version, commit });
      const [repo, pinned] = await Promise.all([stat.value(), pins.value()]);
      if (repo !== undefined) {
        samples.add("modhost_node_repo_size_bytes", repo.bytes);
        if (repo.storageMax !== undefined) samples.add("modhost_node_repo_limit_bytes", repo.storageMax);
        samples.add("modhost_node_blocks", repo.blocks);
      }
      for (const [mode, count] of Object.entries(pinned ?? {})) samples.add("modhost_node_pins", count, { mode });
      for (const [source, count] of Object.entries(node.blocks.reads)) {
        samples.add("modhost_node_block_reads_total", count, { source });
      }
      samples.add("modhost_node_damaged_blocks_total", node.blocks.damaged.count);
      const { added, collections } = node.counts;
      samples.add("modhost_node_added_files_total", added.files);
      samples.add("modhost_node_added_bytes_total", added.bytes);
      samples.add("modhost_node_gc_runs_total", collections.runs);
      samples.add("modhost_node_gc_failed_total", collections.failed);
      samples.add("modhost_node_gc_removed_blocks_total", collections.removed);
      samples.add("modhost_node_gc_seconds_total", collections.time / 1000);
      const { storeMetrics: counts } = node;
      if (counts !== undefined) samples.all.push(...storeSamples(counts, node.problem === undefined));
      const network = node.online ? await node.network().catch(() => undefined) : undefined;
      samples.add("modhost_node_online", network === undefined ? 0 : 1);
      if (network !== undefined) addNetwork(samples, network);
      return samples.all;
    },
  };
}

class Samples {
  readonly all: MetricSample[] = [];

  add(name: Name, value: MetricSample["value"], labels: Readonly<Record<string, string>> = {}): void {
    this.all.push({ name, labels, value });
  }
}

async function countPins({ pins }: LowLevelNode): Promise<Record<"recursive" | "direct", number>> {
  const counts = { recursive: 0, direct: 0 };
  for (const mode of ["recursive", "direct"] as const) for await (const _ of pins.list(mode)) counts[mode] += 1;
  return counts;
}

function addNetwork(samples: Samples, network: Network): void {
  addBitswap(samples, network);
  addHttpSources(samples, network);
  addConnections(samples, network);
  addBandwidth(samples, network);
  const { routing } = network;
  for (const table of ["wan", "lan"] as const) {
    const peers = routing.dht?.[table].size;
    if (peers !== undefined) samples.add("modhost_node_dht_peers", peers, { table });
  }
  samples.add("modhost_node_provides_total", routing.provideStat.total);
  samples.add("modhost_node_provide_queue", routing.queued);
  const { sweeper } = routing.providing;
  if (sweeper === undefined) return;
  samples.add("modhost_node_provide_keys", sweeper.keystore.size);
  samples.add("modhost_node_provide_regions", sweeper.schedule.wanted.length);
  samples.add("modhost_node_provide_behind_seconds", sweeper.behindMs / 1000);
  samples.add("modhost_node_provide_records_total", sweeper.metrics.records);
  samples.add("modhost_node_provide_failed_total", sweeper.metrics.failed);
}

function addBitswap(samples: Samples, { bitswap }: Network): void {
  const stat = bitswap.stat();
  const histogram = ({ counts, sum }: { counts: readonly number[]; sum: number }) => ({ counts: [...counts], sum });
  samples.add("ipfs_bitswap_recv_all_blocks_bytes", histogram(bitswap.sizes.received));
  samples.add("ipfs_bitswap_recv_dup_blocks_bytes", histogram(bitswap.sizes.duplicate));
  samples.add("ipfs_bitswap_sent_all_blocks_bytes", histogram(bitswap.sizes.sent));
  samples.add("ipfs_bitswap_wantlist_total", stat.wantlist.length);
  samples.add("modhost_node_bitswap_blocks_total", stat.blocksReceived, { direction: "in" });
  samples.add("modhost_node_bitswap_blocks_total", stat.blocksSent, { direction: "out" });
  samples.add("modhost_node_bitswap_bytes_total", stat.dataReceived, { direction: "in" });
  samples.add("modhost_node_bitswap_bytes_total", stat.dataSent, { direction: "out" });
  samples.add("modhost_node_bitswap_duplicates_total", stat.dupBlksReceived);
  samples.add("modhost_node_bitswap_unwanted_total", stat.unwantedBlocksReceived);
  samples.add("modhost_node_bitswap_messages_total", stat.messagesReceived);
  samples.add("modhost_node_bitswap_malformed_total", stat.malformedMessages);
  samples.add("modhost_node_bitswap_refused_wants_total", stat.wantsRefused);
  samples.add("modhost_node_bitswap_partners", stat.peers.length);
}

function addHttpSources(samples: Samples, { httpSources }: Network): void {
  const { bytes, ...results } = httpSources.counts;
  samples.add("modhost_node_http_sources", httpSources.size);
  for (const [result, count] of Object.entries(results)) {
    samples.add("modhost_node_http_source_requests_total", count, { result });
  }
  samples.add("modhost_node_http_source_bytes_total", bytes);
}

function addConnections(samples: Samples, { libp2p }: Network): void {
  const connections = libp2p.getConnections();
  for (const [direction, name] of [
    ["inbound", "in"],
    ["outbound", "out"],
  ] as const) {
    const count = connections.filter((connection) => connection.direction === direction).length;
    samples.add("modhost_node_connections", count, { direction: name });
  }
  const transports = new Map<string, number>();
  for (const [first] of Map.groupBy(connections, ({ remotePeer }) => remotePeer.toString()).values()) {
    const names = first?.remoteAddr.getComponents().map(({ name }) => `/${name}`) ?? [];
    // The peer id is not part of the transport.
    const transport = names.join("").replace(/\/p2p$/, "");
    transports.set(transport, (transports.get(transport) ?? 0) + 1);
  }
  for (const [transport, count] of transports) samples.add("ipfs_p2p_peers_total", count, { transport });
}

function addBandwidth(samples: Samples, { swarm }: Network): void {
  const { bandwidth } = swarm;
  if (bandwidth === undefined) return;
  const { TotalIn, TotalOut } = bandwidth.total();
  samples.add("modhost_node_network_bytes_total", TotalIn, { direction: "in" });
  samples.add("modhost_node_network_bytes_total", TotalOut, { direction: "out" });
  const rest = { in: 0, out: 0 };
  let at = 0;
  for (const protocol of bandwidth.protocols()) {
    const traffic = bandwidth.protocol(protocol);
    at += 1;
    if (at > MAX_PROTOCOLS) {
      rest.in += traffic.TotalIn;
      rest.out += traffic.TotalOut;
      continue;
    }
    samples.add("modhost_node_protocol_bytes_total", traffic.TotalIn, { protocol, direction: "in" });
    samples.add("modhost_node_protocol_bytes_total", traffic.TotalOut, { protocol, direction: "out" });
  }
  if (at <= MAX_PROTOCOLS) return;
  for (const direction of ["in", "out"] as const) {
    samples.add("modhost_node_protocol_bytes_total", rest[direction], { protocol: "other", direction });
  }
}
