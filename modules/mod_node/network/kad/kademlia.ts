/** libp2p's Kademlia as this node uses it: what it is told, what is kept from it, and what is used of its inside. */
import { KEEP_ALIVE, type PeerData, type PeerDiscovery, type Startable } from "@libp2p/interface";
import {
  type KadDHT,
  type KadDHTComponents,
  kadDHT,
  removePrivateAddressesMapper,
  removePublicAddressesMapper,
} from "@libp2p/kad-dht";
import type { PeerId } from "../../formats/peer_id.ts";
import { transportOf } from "../swarm/multiaddr.ts";
import { withOverrides } from "../swarm/overlaid.ts";
import { boundAnswers, type Network } from "./answers.ts";
import { RecordDatastore, type RecordStore } from "./record_store.ts";
import { selectors, validators } from "./validators.ts";

export type DhtName = "wan" | "lan";

/** `auto`: a server while there is an address that everybody can reach. */
export type DhtMode = "client" | "server" | "auto";

export interface DhtOptions {
  readonly name: DhtName;
  readonly mode: DhtMode;
  readonly records: RecordStore;
}

/** Of the wire (wire protocols, section 2). Each table knows those that can be reached from where it is. */
const kinds = {
  wan: { protocol: "/ipfs/kad/1.0.0", mapper: removePrivateAddressesMapper },
  lan: { protocol: "/ipfs/lan/kad/1.0.0", mapper: removePublicAddressesMapper },
} as const;

/** Longest time that a timer can be set to, in milliseconds: announcing again is not the table's affair. */
const never = 2 ** 31 - 1;

/** What is used of the library beyond what it tells. */
export interface Kademlia extends KadDHT, Startable, PeerDiscovery {
  readonly network: Network;
  readonly routingTable: EventTarget & {
    readonly size: number;
    readonly kb: {
      readonly localPeer?: { readonly kadId: Uint8Array };
      toIterable(): Iterable<{ readonly kadId: Uint8Array; readonly peerId: PeerId; readonly lastPing: number }>;
    };
    remove(peer: PeerId): Promise<void>;
  };
  readonly routingTableRefresh: {
    readonly commonPrefixLengthRefreshedAt: readonly (Date | undefined)[];
    refreshTable: () => void;
  };
}

export function createKademlia(components: KadDHTComponents, { name, mode, records }: DhtOptions): Kademlia {
  const { peerId, privateKey, registrar, addressManager, peerStore, connectionManager, events, logger, ping } =
    components;
  const { protocol, mapper } = kinds[name];
  const own = () => mapper({ id: peerId, multiaddrs: addressManager.getAddresses().map(transportOf) }).multiaddrs;
  const make = kadDHT({
    protocol,
    peerInfoMapper: mapper,
    // Whoever asks an empty table is to hear so at once.
    allowQueryWithZeroPeers: true,
    datastorePrefix: "",
    logPrefix: `dht:${name}`,
    validators,
    selectors,
    reprovide: { interval: never, threshold: 0, validity: Number.MAX_SAFE_INTEGER },
    ...(mode === "auto" ? {} : { clientMode: mode === "client" }),
  });
  const kad = make({
    peerId,
    privateKey,
    registrar,
    connectionManager,
    events,
    logger,
    ping,
    addressManager: withOverrides(addressManager, { getAddresses: own }),
    peerStore: withOverrides(peerStore, { merge: (id, data, options) => peerStore.merge(id, unkept(data), options) }),
    datastore: new RecordDatastore(records, peerStore),
  }) as Kademlia;
  boundAnswers(kad.network);
  return kad;
}

/** The library marks the nearest peers as those to be dialled again whenever a connection ends: nobody asked for that. */
function unkept(data: PeerData): PeerData {
  const { tags } = data;
  if (tags === undefined) return data;
  const entries = tags instanceof Map ? [...tags] : Object.entries(tags);
  return { ...data, tags: Object.fromEntries(entries.filter(([name]) => !name.startsWith(KEEP_ALIVE))) };
}
