/**
 * The network of a node: libp2p and the protocols on top of it. Loaded when the node goes online,
 * because nothing else needs it.
 */
import type { Libp2p } from "@libp2p/interface";
import type { Pins } from "../content/pins/pins.ts";
import type { BlockService } from "../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../storage/metadata/store.ts";
import type { Repo } from "../storage/repo/repo.ts";
import { settledWithin } from "../util/async/within.ts";
import type { NodeLog } from "../util/log.ts";
import { AutoConf } from "./auto_conf.ts";
import { Bitswap, type BitswapDeps } from "./bitswap/bitswap.ts";
import { requireConsistent } from "./consistency.ts";
import { NetworkConfig } from "./follow_config.ts";
import { HttpSources } from "./http_retrieval/http_sources.ts";
import { retrievalSettings } from "./http_retrieval/settings.ts";
import { fetchService } from "./ipns/fetch_protocol.ts";
import type { Names } from "./ipns/names.ts";
import { routingServices } from "./kad/services.ts";
import { P2p } from "./p2p/p2p.ts";
import { Discovery } from "./pubsub/discovery.ts";
import { Pubsub } from "./pubsub/pubsub.ts";
import { pubsubService, routerOf } from "./pubsub/router.ts";
import { dhtModes } from "./routing/from_config.ts";
import { Routing, type RoutingDeps } from "./routing/routing.ts";
import { PatchNotices } from "./swarm/patches/notices.ts";
import { openSwarm, type Swarm } from "./swarm/swarm.ts";

/**
 * Milliseconds in which the protocols have to stop. libp2p then gets the same time: process
 * managers wait three seconds.
 */
const STOP_TIMEOUT_MS = 1500;

export interface NetworkDeps {
  readonly repo: Repo;
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  readonly hostMetadata: MetadataStore;
  readonly shared?: RoutingDeps["shared"];
  readonly pins: Pins;
  readonly filesRoot?: RoutingDeps["filesRoot"];
  readonly names: Names;
  /** Whether pubsub is enabled. */
  readonly pubsub: boolean;
  readonly namesOverPubsub: boolean;
  /** The agent version that the node reports. */
  readonly agent: string;
  readonly log: NodeLog;
  /**
   * Receives a sentence about each part of the configuration that could not be applied, while the
   * rest works.
   */
  readonly onNotice?: ((sentence: string) => void) | undefined;
}

export interface Network {
  readonly libp2p: Libp2p;
  /** Connections, addresses, filters and bandwidth. */
  readonly swarm: Swarm;
  /** Exchanges blocks with peers. */
  readonly bitswap: Bitswap;
  /** Fetches blocks from gateways over HTTP. */
  readonly httpSources: HttpSources;
  /** Finds and announces providers of blocks, addresses of peers, and records. */
  readonly routing: Routing;
  /** Undefined if pubsub is disabled. */
  readonly pubsub: Pubsub | undefined;
  /** Forwards streams of peers to local sockets, and back. */
  readonly p2p: P2p;
  /** Closes the network; resolves within seconds, whatever peers do. May be called repeatedly. */
  close(): Promise<void>;
}

/**
 * Opens the network according to the configuration. An address that cannot be listened on is
 * reported, and the others are used.
 *
 * @throws NodeError for an invalid configuration
 */
export async function openNetwork(node: NetworkDeps): Promise<Network> {
  for (const sentence of await requireConsistent(node.repo)) node.onNotice?.(sentence);
  const live = new NetworkConfig(node.repo.config, node.log);
  try {
    return await openWith(node, live);
  } catch (error) {
    live.end();
    throw error;
  }
}

async function openWith(node: NetworkDeps, live: NetworkConfig): Promise<Network> {
  const { repo, blocks, metadata, hostMetadata, shared, pins, filesRoot, names, namesOverPubsub, log, onNotice } = node;
  const namesOverFetch = node.pubsub && namesOverPubsub;
  const patches = new PatchNotices((sentence) => {
    log.write("swarm2", "warn", sentence);
    onNotice?.(sentence);
  });
  const swarm = await openSwarm({
    repo,
    agent: node.agent,
    metadata: hostMetadata,
    log,
    patches,
    services: {
      ...routingServices({ repo, modes: dhtModes(repo.config), metadata: hostMetadata, patches }),
      ...(node.pubsub ? pubsubService(repo.config) : {}),
      ...fetchService(namesOverFetch),
    },
    ...(onNotice === undefined ? {} : { onNotice }),
  });
  const { libp2p } = swarm;
  const bitswap = new Bitswap({ libp2p, blocks, log, patches, ...exchanging(repo.config) });
  const httpSources = new HttpSources({
    receiver: bitswap.receiver,
    settings: () => retrievalSettings(repo.config),
    isFiltered: (ip) => swarm.filters.blocksHost(ip),
    log,
  });
  const routing = new Routing({ libp2p, repo, blocks, metadata, hostMetadata, shared, pins, filesRoot, log });
  const p2p = new P2p({ libp2p, swarm, log });
  const autoConf = new AutoConf({ config: repo.config, log, changed: () => renewAuto({ swarm, routing }) });
  const router = routerOf(libp2p);
  const pubsub = router && new Pubsub({ libp2p, router, log, patches });
  const close = once(async () => {
    live.end();
    blocks.onNew = undefined;
    const stops = [
      () => autoConf.stop(),
      () => pubsub?.stop(),
      () => names.goOffline(),
      () => routing.stop(),
      () => httpSources.close(),
      () => bitswap.stop(),
      () => p2p.stop(),
    ];
    // If one function throws, all others are called nevertheless.
    await settledWithin(STOP_TIMEOUT_MS, Promise.allSettled(stops.map(async (stop) => stop())));
    await swarm.stop();
  });
  try {
    bitswap.providers = routing;
    bitswap.sources = httpSources;
    swarm.findPeer = (id, signal) => routing.addresses(id, signal);
    // Protocols are registered before a peer can ask for them.
    await bitswap.start();
    await p2p.start();
    await swarm.start();
    await routing.start();
    blocks.onNew = (cids) => routing.providing.announceBlocks(cids);
    if (pubsub !== undefined)
      pubsub.discovery = new Discovery({ routing, swarm, connectedSubscribers: (topic) => pubsub.peers(topic).length });
    await names.goOnline({ libp2p, routing, pubsub });
    await live.begin({ swarm, routing, names, httpSources, autoConf });
  } catch (error) {
    await close();
    throw error;
  }
  return { libp2p, swarm, bitswap, httpSources, routing, pubsub, p2p, close };
}

/** Applies changed values of the word `auto`. */
async function renewAuto({ swarm, routing }: Pick<Network, "swarm" | "routing">): Promise<void> {
  swarm.keepers.renewBootstrap();
  await routing.renewRouter();
}

/** Reads the section `Bitswap` of the configuration. */
const exchanging = (config: Repo["config"]): Pick<BitswapDeps, "overLibp2p" | "serves"> => ({
  overLibp2p: config.value("Bitswap.Libp2pEnabled") !== false,
  serves: () => config.value("Bitswap.ServerEnabled") !== false,
});

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => (running ??= work());
}
