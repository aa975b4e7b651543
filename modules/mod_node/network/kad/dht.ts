/** One table of the routing system, told in the words of the reference. */
import { type Connection, type PeerDiscovery, peerDiscoverySymbol, type Startable } from "@libp2p/interface";
import type { KadDHTComponents, QueryEvent } from "@libp2p/kad-dht";
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import { LRU } from "../../util/lru.ts";
import { eventTypes, NO_PEERS_TEXT, type QueryKind, queryError, type RoutingEvents, translate } from "./events.ts";
import { createKademlia, type DhtName, type DhtOptions, type Kademlia } from "./kademlia.ts";
import type { RecordStore } from "./record_store.ts";
import { isValid } from "./validators.ts";

export interface BucketEntry {
  readonly id: PeerId;
  readonly connected: boolean;
  /** When it answered last; when it told something of use. */
  readonly queried: Date | undefined;
  readonly useful: Date | undefined;
}

/** Peers that have so many leading bits in common with this node as there are buckets before. */
export interface Bucket {
  readonly refreshed: Date | undefined;
  readonly peers: readonly BucketEntry[];
}

interface LastAnswer {
  readonly queried: Date;
  readonly useful: Date | undefined;
}

/** Peers of which it is known when they answered; a table has fewer. */
const MAX_REMEMBERED_ANSWERS = 4096;

/** A service of libp2p that finds peers and nothing else: nobody but the node asks it. */
export class Dht implements Startable {
  readonly name: DhtName;
  readonly [peerDiscoverySymbol]: PeerDiscovery;
  /** Told of the first peer of an empty table. */
  onFirstPeer: (() => void) | undefined;
  readonly #kad: Kademlia;
  readonly #records: RecordStore;
  readonly #self: PeerId;
  readonly #connections: (peer: PeerId) => readonly Connection[];
  /** Of those that answered last, the last one last. */
  readonly #answers = new LRU<string, LastAnswer>(MAX_REMEMBERED_ANSWERS);
  readonly #stop = new AbortController();
  /** When the peers next to this node were asked for. */
  #selfLookedUpAt: Date | undefined;
  #wasEmpty = true;

  constructor(components: KadDHTComponents, options: DhtOptions) {
    const { name, records } = options;
    const { peerId, connectionManager } = components;
    this.name = name;
    this.#records = records;
    this.#self = peerId;
    this.#connections = (peer) => connectionManager.getConnections(peer);
    this.#kad = createKademlia(components, options);
    this[peerDiscoverySymbol] = this.#kad;
    this.#kad.routingTable.addEventListener("peer:add", this.#onPeerAdded);
    this.#kad.routingTable.addEventListener("peer:remove", this.#onPeerRemoved);
  }

  async start(): Promise<void> {
    this.#records.start();
    await this.#kad.start();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    // Its timer would be set again when a refresh ends that is under way.
    this.#kad.routingTableRefresh.refreshTable = () => undefined;
    await this.#kad.stop();
    await this.#records.close();
  }

  /** The value of a key that is kept here, of whichever table; undefined when there is none that is still valid. */
  async localValue(key: Uint8Array): Promise<Uint8Array | undefined> {
    const value = await this.#records.value(key);
    return value !== undefined && (await isValid(key, value)) ? value : undefined;
  }

  /** Peers in it. */
  get size(): number {
    return this.#kad.routingTable.size;
  }

  /** The peers next to a key, asked one after the other until none is nearer. */
  closest(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    return this.#run("closest", this.#kad.getClosestPeers(key, { signal }), signal);
  }

  /** Ends with the first answer that names addresses of the peer. */
  async *findPeer(id: PeerId, signal: AbortSignal): RoutingEvents {
    const events = this.#run("findPeer", this.#kad.findPeer(id, { signal, useCache: false }), signal);
    try {
      for await (const event of events) {
        yield event;
        if (event.type === eventTypes.finalPeer) return;
      }
    } catch (error) {
      if ((error as Error).name !== "NotFoundError") throw error;
    }
  }

  /** Those known here first. */
  findProviders(cid: CID, signal: AbortSignal): RoutingEvents {
    return this.#run("findProviders", this.#kad.findProviders(cid, { signal }), signal);
  }

  /** Every valid record that others have, as it comes. */
  async *get(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    let met = false;
    try {
      for await (const event of this.#run("get", this.#kad.get(key, { signal }), signal)) {
        met ||= event.type === eventTypes.value;
        yield event;
      }
    } catch (error) {
      // That somebody would not take the better record is no failure of the search.
      if (!met || signal.aborted) throw error;
    }
  }

  /**
   * Keeps the record here and sends it to the peers next to the key: a `value` event for each that has taken it.
   *
   * @throws NodeError when a better one is kept here
   */
  put(key: Uint8Array, value: Uint8Array, signal: AbortSignal): RoutingEvents {
    return this.#run("put", this.#kad.put(key, value, { signal }) as AsyncIterable<QueryEvent>, signal);
  }

  /** Tells the peers next to a block that it can be had here. */
  provide(cid: CID, signal: AbortSignal): RoutingEvents {
    return this.#run("provide", this.#kad.provide(cid, { signal }), signal);
  }

  async *#run(deed: QueryKind, events: AsyncIterable<QueryEvent>, signal: AbortSignal): RoutingEvents {
    signal.throwIfAborted();
    if (this.size === 0) yield queryError(NO_PEERS_TEXT);
    try {
      for await (const event of events) {
        this.#observe(event, signal);
        if (event.name === "DIAL_PEER" && this.#connections(event.peer).length > 0) continue;
        if (event.name === "PEER_RESPONSE" && event.from.equals(this.#self)) continue;
        yield* translate(deed, event);
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  #observe(event: QueryEvent, signal: AbortSignal): void {
    if (event.name === "PEER_RESPONSE") {
      const name = event.from.toString();
      const queried = new Date();
      const isUseful = event.closer.length + event.providers.length > 0 || event.record !== undefined;
      const useful = isUseful ? queried : this.#answers.peek(name)?.useful;
      this.#answers.set(name, { queried, useful });
    } else if (event.name === "QUERY_ERROR" && !signal.aborted && this.#connections(event.from).length === 0) {
      // Who cannot be reached is asked no more; the library would keep it while there is room.
      void this.#kad.routingTable.remove(event.from).catch(() => undefined);
    }
  }

  /** As `stats/dht` shows it: up to the last one with a peer in it. */
  buckets(): readonly Bucket[] {
    const { kb } = this.#kad.routingTable;
    const own = kb.localPeer?.kadId;
    if (own === undefined) return [];
    const { commonPrefixLengthRefreshedAt: refreshed } = this.#kad.routingTableRefresh;
    const peers: BucketEntry[][] = [];
    for (const { kadId, peerId, lastPing } of kb.toIterable()) {
      const heard = this.#answers.peek(peerId.toString());
      (peers[sharedBits(own, kadId)] ??= []).push({
        id: peerId,
        connected: this.#connections(peerId).length > 0,
        queried: new Date(Math.max(heard?.queried.getTime() ?? 0, lastPing)),
        useful: heard?.useful,
      });
    }
    return Array.from(peers, (those = [], at) => ({ refreshed: refreshed[at] ?? this.#selfLookedUpAt, peers: those }));
  }

  readonly #onPeerAdded = (): void => {
    if (!this.#wasEmpty) return;
    this.#wasEmpty = false;
    this.onFirstPeer?.();
    void this.#lookUpSelf();
  };

  readonly #onPeerRemoved = (event: Event): void => {
    this.#wasEmpty = this.size === 0;
    this.#answers.delete(String((event as CustomEvent<PeerId>).detail));
  };

  /** The first peer knows others: those next to this node are the ones it needs to know. Never rejects. */
  async #lookUpSelf(): Promise<void> {
    try {
      for await (const _ of this.closest(this.#self.toMultihash().bytes, this.#stop.signal));
      this.#selfLookedUpAt = new Date();
    } catch {
      // The library looks around again every few minutes.
    }
  }
}

/** Leading bits that are the same. */
function sharedBits(one: Uint8Array, other: Uint8Array): number {
  const at = one.findIndex((byte, index) => byte !== other[index]);
  if (at < 0) return one.length * 8;
  return at * 8 + Math.clz32((one[at] as number) ^ (other[at] as number)) - 24;
}
