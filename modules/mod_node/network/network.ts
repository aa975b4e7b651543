/** The network of a node: libp2p, and what runs over it. `Node.goOnline` opens it; nobody else loads libp2p. */
import type { Libp2p } from "@libp2p/interface";
import type { Pins } from "../content/pins/pins.ts";
import type { BlockService } from "../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../storage/metadata/store.ts";
import type { Repo } from "../storage/repo/repo.ts";
import { settledWithin } from "../util/async/settled_within.ts";
import type { NodeLog } from "../util/log.ts";
import { Bitswap } from "./bitswap/bitswap.ts";
import { fetchService } from "./ipns/fetch_protocol.ts";
import type { Names } from "./ipns/names.ts";
import { Routing } from "./kad/routing.ts";
import { routingServices } from "./kad/services.ts";
import { P2p } from "./p2p/p2p.ts";
import { Discovery } from "./pubsub/discovery.ts";
import { Pubsub } from "./pubsub/pubsub.ts";
import { pubsubService, routerOf } from "./pubsub/router.ts";
import { PatchNotices } from "./swarm/patches/notices.ts";
import { openSwarm, type Swarm } from "./swarm/swarm.ts";

/** Milliseconds that what runs over libp2p has to end in. Then libp2p has as many: launchers wait three seconds. */
const stopWithin = 1500;

/** What the network needs of the node. */
export interface NetworkDeps {
  readonly repo: Repo;
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  readonly pins: Pins;
  readonly names: Names;
  /** Messages are published and subscribed to. */
  readonly pubsub: boolean;
  readonly namesOverPubsub: boolean;
  readonly log: NodeLog;
  /** Told in a sentence of what is not as the configuration says, while the rest of it is. */
  readonly onNotice?: ((sentence: string) => void) | undefined;
}

export interface Network {
  readonly libp2p: Libp2p;
  /** Connections, addresses, filters, bandwidth. */
  readonly swarm: Swarm;
  /** Blocks from and for others. */
  readonly bitswap: Bitswap;
  /** Who has what, and where everybody is. */
  readonly routing: Routing;
  /** Messages under topics; undefined when that is switched off. */
  readonly pubsub: Pubsub | undefined;
  /** Streams to swarm as local sockets. */
  readonly p2p: P2p;
  /** Ends within seconds, whatever the others do. May be called again. */
  close(): Promise<void>;
}

/**
 * Opens the network in the way that the configuration says. What cannot be listened on is told in the log, and the
 * others of it go on.
 *
 * @throws NodeError of a configuration that says what cannot be
 */
export async function openNetwork(node: NetworkDeps): Promise<Network> {
  const { repo, blocks, metadata, pins, names, namesOverPubsub, log, onNotice } = node;
  const isFetching = node.pubsub && namesOverPubsub;
  const patches = new PatchNotices((sentence) => {
    log.write("swarm2", "warn", sentence);
    onNotice?.(sentence);
  });
  const swarm = await openSwarm({
    repo,
    metadata,
    log,
    patches,
    services: {
      ...routingServices({ repo, metadata, patches }),
      ...(node.pubsub ? pubsubService(repo.config) : {}),
      ...fetchService(isFetching),
    },
    ...(onNotice === undefined ? {} : { onNotice }),
  });
  const { libp2p } = swarm;
  const bitswap = new Bitswap({ libp2p, blocks, log, patches });
  const routing = new Routing({ libp2p, repo, blocks, metadata, pins, log });
  const p2p = new P2p({ libp2p, log });
  const router = routerOf(libp2p);
  const pubsub = router && new Pubsub({ libp2p, router, log, patches });
  const close = once(async () => {
    const ends = [
      () => pubsub?.stop(),
      () => names.goOffline(),
      () => routing.stop(),
      () => bitswap.stop(),
      () => p2p.stop(),
    ];
    // What throws holds up none of the others.
    await settledWithin(stopWithin, Promise.allSettled(ends.map(async (end) => end())));
    await swarm.stop();
  });
  try {
    bitswap.providers = routing;
    swarm.findPeer = (id, signal) => routing.addresses(id, signal);
    // Protocols are there before the first peer asks which.
    await bitswap.start();
    await p2p.start();
    await swarm.start();
    await routing.start();
    if (pubsub !== undefined)
      pubsub.discovery = new Discovery({ routing, swarm, connectedSubscribers: (topic) => pubsub.peers(topic).length });
    await names.goOnline({ libp2p, routing, pubsub });
  } catch (error) {
    await close();
    throw error;
  }
  return { libp2p, swarm, bitswap, routing, pubsub, p2p, close };
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => (running ??= work());
}
