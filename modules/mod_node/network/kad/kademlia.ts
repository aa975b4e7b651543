/** Sets up libp2p's Kademlia DHT for this node. */
import { KEEP_ALIVE, type PeerData, type PeerDiscovery, type Startable } from "@libp2p/interface";
import {
  type KadDHT,
  type KadDHTComponents,
  kadDHT,
  removePrivateAddressesMapper,
  removePublicAddressesMapper,
} from "@libp2p/kad-dht";
import { type Multiaddr, transportOf } from "../swarm/multiaddr.ts";
import type { PatchNotices } from "../swarm/patches/notices.ts";
import { withOverrides } from "../swarm/patches/with_overrides.ts";
import { limitMessages } from "./patches/limit_messages.ts";
import { type RoutingTableView, routingTableOf } from "./patches/routing_table.ts";
import { RecordDatastore, type RecordStore } from "./record_store.ts";
import { selectors, validators } from "./validators.ts";

export type DhtName = "wan" | "lan";

/** `auto`: a server while the node has a publicly reachable address. */
export type DhtMode = "client" | "server" | "auto";

export interface DhtOptions {
  readonly name: DhtName;
  readonly mode: DhtMode;
  readonly records: RecordStore;
  readonly patches: PatchNotices;
}

/**
 * Protocols of the libp2p kad-dht specification. Each DHT only contains peers that are reachable in
 * its network.
 */
const NETWORKS = {
  wan: { protocol: "/ipfs/kad/1.0.0", mapper: removePrivateAddressesMapper },
  lan: { protocol: "/ipfs/lan/kad/1.0.0", mapper: removePublicAddressesMapper },
} as const;

/**
 * Longest delay that a timer supports, in milliseconds. The library never reprovides, because the
 * node's own reprovider does that.
 */
const NEVER_MS = 2 ** 31 - 1;

export interface Kademlia {
  readonly dht: KadDHT & Startable & PeerDiscovery;
  readonly table: RoutingTableView;
  readonly protocol: string;
  /** Returns the addresses at which peers of this DHT reach the node. */
  addresses(): readonly Multiaddr[];
  /** Whether the node has an address that all peers of this DHT can dial. */
  isReachable(): boolean;
}

export function createKademlia(components: KadDHTComponents, options: DhtOptions): Kademlia {
  const { name, mode, records, patches } = options;
  const { peerId, privateKey, registrar, addressManager, peerStore, connectionManager, events, logger, ping } =
    components;
  const { protocol, mapper } = NETWORKS[name];
  const own = () => mapper({ id: peerId, multiaddrs: addressManager.getAddresses().map(transportOf) }).multiaddrs;
  const make = kadDHT({
    protocol,
    peerInfoMapper: mapper,
    // A query of an empty routing table fails immediately instead of waiting for the first peer.
    allowQueryWithZeroPeers: true,
    datastorePrefix: "",
    logPrefix: `dht:${name}`,
    validators,
    selectors,
    reprovide: { interval: NEVER_MS, threshold: 0, validity: Number.MAX_SAFE_INTEGER },
    // The mode `auto` of the library could not be left again.
    clientMode: mode !== "server",
  });
  const dht = make({
    peerId,
    privateKey,
    registrar,
    connectionManager,
    events,
    logger,
    ping,
    addressManager: withOverrides(addressManager, { getAddresses: own }),
    peerStore: withOverrides(peerStore, {
      merge: (id, data, mergeOptions) => peerStore.merge(id, withoutKeepAlive(data), mergeOptions),
    }),
    datastore: new RecordDatastore(records, peerStore),
  }) as Kademlia["dht"];
  limitMessages(dht, records, patches);
  const isReachable = () => own().some((address) => !address.toString().includes("/p2p-circuit"));
  return { dht, table: routingTableOf(dht, components, patches), protocol, addresses: own, isReachable };
}

/**
 * Removes the tags that the library gives to the closest peers: they would make libp2p dial these
 * peers again whenever a connection ends, which the node does not need.
 */
function withoutKeepAlive(data: PeerData): PeerData {
  const { tags } = data;
  if (tags === undefined) return data;
  const entries = tags instanceof Map ? [...tags] : Object.entries(tags);
  return { ...data, tags: Object.fromEntries(entries.filter(([name]) => !name.startsWith(KEEP_ALIVE))) };
}
