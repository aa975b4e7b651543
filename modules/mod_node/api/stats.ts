/** Statistics. */
import { setTimeout as delay } from "node:timers/promises";
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import type { Bucket, BucketEntry } from "../network/kad/dht.ts";
import type { Network } from "../network/network.ts";
import type { BandwidthStats } from "../network/swarm/bandwidth.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure, NodeError } from "../util/errors.ts";
import { parseDuration } from "../util/go/duration.ts";
import { type BitswapApi, bitswapApi } from "./bitswap.ts";
import { type CallOptions, callSignal, listOf, type PeerName } from "./common.ts";
import { type RepoApi, repoApi } from "./repo.ts";

export interface StatsBwOptions extends CallOptions {
  /** Only count this peer. */
  readonly peer?: PeerName | undefined;
  /** Only count this protocol. */
  readonly proto?: string | undefined;
  /** Yield results repeatedly, until the signal is aborted or the reader stops. */
  readonly poll?: boolean | undefined;
  /** With `poll`, the interval: milliseconds, or a duration such as `1.5s`; a second by default. */
  readonly interval?: number | string | undefined;
}

/** Bytes, and bytes per second. */
export interface StatsBwResult {
  readonly totalIn: bigint;
  readonly totalOut: bigint;
  readonly rateIn: number;
  readonly rateOut: number;
}

/** A routing table of the DHT. */
export interface StatsDhtResult {
  readonly name: string;
  readonly buckets: readonly StatsDhtBucket[];
}

/**
 * A bucket of the routing table: bucket n has the peers whose ids share n leading bits with the id
 * of this node.
 */
export interface StatsDhtBucket {
  /** Undefined if it was never refreshed; the same holds for the times of peers. */
  readonly lastRefresh: Date | undefined;
  readonly peers: readonly StatsDhtPeer[];
}

export interface StatsDhtPeer {
  readonly id: PeerId;
  readonly connected: boolean;
  readonly agentVersion: string;
  readonly lastUsefulAt: Date | undefined;
  readonly lastQueriedAt: Date | undefined;
}

/** Statistics of announcements to the routing system since the start; durations in milliseconds. */
export interface StatsProvideResult {
  readonly totalProvides: number;
  readonly lastReprovideBatchSize: number;
  readonly avgProvideDuration: number;
  readonly lastReprovideDuration: number;
}

/** All methods except `repo` reject with a NodeError while the node is offline. */
export interface StatsApi {
  readonly bitswap: BitswapApi["stat"];
  readonly repo: RepoApi["stat"];
  /**
   * Yields the bandwidth once, or repeatedly with `poll`. @throws NodeError if bandwidth is not
   * counted
   */
  bw(options?: StatsBwOptions): AsyncIterable<StatsBwResult>;
  /** Yields routing tables: `wanserver`, `lanserver`, `wan`, `lan`; the latter two by default. */
  dht(name?: string | readonly string[], options?: CallOptions): AsyncIterable<StatsDhtResult>;
  /** @throws NodeError unless `Experimental.AcceleratedDHTClient` is on */
  provide(options?: CallOptions): Promise<StatsProvideResult>;
}

/** Minimum interval in milliseconds. */
const MIN_INTERVAL_MS = 10;

export function statsApi(node: LowLevelNode): StatsApi {
  return {
    bitswap: bitswapApi(node).stat,
    repo: repoApi(node).stat,
    bw: (options = {}) => bandwidth(node, options),
    dht: (names = ["wan", "lan"]) => tables(node, listOf(names)),
    async provide() {
      const { routing } = await node.network();
      if (!isAccelerated(node)) {
        throw failure("FEATURE_OFF", {
          reason: "can only return stats if Experimental.AcceleratedDHTClient is enabled",
        });
      }
      const { total, averageMs, lastReprovide } = routing.provideStat;
      return {
        totalProvides: total,
        lastReprovideBatchSize: lastReprovide.provided,
        avgProvideDuration: averageMs,
        lastReprovideDuration: lastReprovide.durationMs,
      };
    },
  };
}

async function* bandwidth(
  node: LowLevelNode,
  { peer, proto, poll, interval = 1000, ...options }: StatsBwOptions,
): AsyncGenerator<StatsBwResult, void, undefined> {
  const signal = callSignal(options);
  const { bandwidth: counted } = (await node.network("client")).swarm;
  if (counted === undefined) throw failure("FEATURE_OFF", { reason: "bandwidth reporter disabled in config" });
  if (peer !== undefined && proto !== undefined) {
    throw new NodeError("OPTION_CONFLICT", "please only specify peer OR protocol", { kind: "client" });
  }
  const id = peer === undefined ? undefined : parsePeerId(String(peer));
  const milliseconds = typeof interval === "number" ? interval : parseDuration(interval);
  const read = (): BandwidthStats => {
    if (id !== undefined) return counted.peer(id);
    return proto === undefined ? counted.total() : counted.protocol(proto);
  };
  for (;;) {
    const { TotalIn, TotalOut, RateIn, RateOut } = read();
    yield { totalIn: BigInt(TotalIn), totalOut: BigInt(TotalOut), rateIn: RateIn, rateOut: RateOut };
    if (poll !== true) return;
    await delay(Math.max(milliseconds, MIN_INTERVAL_MS), undefined, { signal });
  }
}

const isAccelerated = ({ repo }: LowLevelNode): boolean => repo.config.value("Experimental.AcceleratedDHTClient");

async function* tables(node: LowLevelNode, names: readonly string[]): AsyncGenerator<StatsDhtResult, void, undefined> {
  const network = await node.network();
  const { dht: both } = network.routing;
  if (both === undefined) throw failure("DHT_MISSING");
  for (const name of names) {
    const found = { wan: both.wan, wanserver: both.wan, lan: both.lan, lanserver: both.lan }[name];
    if (found === undefined) throw new NodeError("ARGUMENT_INVALID", `unknown dht type: ${name}`, { kind: "client" });
    const isClient = name === "wan" || name === "lan";
    if (isClient && isAccelerated(node)) {
      if (name === "lan") throw new NodeError("DHT_MISSING", "no LAN client found", { kind: "client" });
      yield { name, buckets: await allAsOne(network, found.buckets()) };
    } else {
      yield { name, buckets: await Promise.all(found.buckets().map((bucket) => shownBucket(network, bucket))) };
    }
  }
}

async function shownBucket(network: Network, { refreshed, peers }: Bucket): Promise<StatsDhtBucket> {
  return { lastRefresh: refreshed, peers: await Promise.all(peers.map((entry) => shownPeer(network, entry))) };
}

async function shownPeer({ swarm }: Network, { id, connected, useful, queried }: BucketEntry): Promise<StatsDhtPeer> {
  const { agentVersion } = await swarm.peerInfo(id);
  return { id, connected, agentVersion, lastUsefulAt: useful, lastQueriedAt: queried };
}

/** With the accelerated DHT client, all known peers form a single bucket. */
async function allAsOne(network: Network, buckets: readonly Bucket[]): Promise<readonly StatsDhtBucket[]> {
  const peers = buckets
    .flatMap((bucket) => bucket.peers)
    .map((entry) => ({ ...entry, useful: undefined, queried: undefined }));
  return [await shownBucket(network, { refreshed: undefined, peers })];
}
