/** One DHT, of the whole internet or of the local network: its queries as events of the RPC, and its routing table. */
import { type Connection, type PeerDiscovery, peerDiscoverySymbol, type Startable } from "@libp2p/interface";
import type { KadDHT, KadDHTComponents, QueryEvent } from "@libp2p/kad-dht";
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import { LRU } from "../../util/lru.ts";
import { Announcer } from "./announcer.ts";
import { eventTypes, NO_PEERS_TEXT, type QueryKind, queryError, type RoutingEvents, translate } from "./events.ts";
import { createKademlia, type DhtMode, type DhtName, type DhtOptions } from "./kademlia.ts";
import type { RoutingTableView } from "./patches/routing_table.ts";
import type { RecordStore } from "./record_store.ts";
import { isValid } from "./validators.ts";

export interface BucketEntry {
  readonly id: PeerId;
  readonly connected: boolean;
  /** When it last answered a query. */
  readonly queried: Date | undefined;
  /** When an answer of it last named a peer or carried a record. */
  readonly useful: Date | undefined;
}

/** Peers whose keys share as many leading bits with the node's own as there are buckets before. */
export interface Bucket {
  readonly refreshed: Date | undefined;
  readonly peers: readonly BucketEntry[];
}

interface LastAnswer {
  readonly queried: Date;
  readonly useful: Date | undefined;
}

/** Peers whose last answer is remembered; a routing table has fewer. */
const MAX_REMEMBERED_ANSWERS = 4096;

/** To libp2p a service that discovers peers; its queries are for the node alone. */
export class Dht implements Startable {
  readonly name: DhtName;
  readonly [peerDiscoverySymbol]: PeerDiscovery;
  /** Announces many blocks at a time. */
  readonly announcer: Announcer;
  /** Called when the first peer enters an empty routing table. */
  onFirstPeer: (() => void) | undefined;
  readonly #dht: KadDHT & Startable;
  readonly #table: RoutingTableView;
  readonly #records: RecordStore;
  readonly #self: PeerId;
  readonly #isReachable: () => boolean;
  #mode: DhtMode;
  readonly #connections: (peer: PeerId) => readonly Connection[];
  readonly #answers = new LRU<string, LastAnswer>(MAX_REMEMBERED_ANSWERS);
  readonly #stop = new AbortController();
  /** When the peers closest to this node were last looked up. */
  #selfLookedUpAt: Date | undefined;
  #wasEmpty = true;

  constructor(components: KadDHTComponents, options: DhtOptions) {
    const { name, records } = options;
    const { peerId, connectionManager, events } = components;
    const { dht, table, protocol, addresses, isReachable } = createKademlia(components, options);
    this.#mode = options.mode;
    this.#isReachable = isReachable;
    events.addEventListener("self:peer:update", () => {
      if (this.#mode === "auto") void this.#settleMode().catch(() => undefined);
    });
    this.name = name;
    this.#records = records;
    this.#self = peerId;
    this.#connections = (peer) => connectionManager.getConnections(peer);
    this.#dht = dht;
    this.#table = table;
    this[peerDiscoverySymbol] = dht;
    this.announcer = new Announcer({
      name,
      protocol,
      connectionManager,
      records,
      closest: (key, signal) => this.closest(key, signal),
      self: () => ({ id: peerId, multiaddrs: addresses() }),
    });
    table.onAdded(() => this.#onPeerAdded());
    table.onRemoved((id) => this.#onPeerRemoved(id));
  }

  async start(): Promise<void> {
    this.#records.start();
    await this.#dht.start();
  }

  /** Answers queries of others from now on, or does not. */
  async setMode(mode: DhtMode): Promise<void> {
    this.#mode = mode;
    await this.#settleMode();
  }

  async #settleMode(): Promise<void> {
    const auto = this.#isReachable() ? "server" : "client";
    await this.#dht.setMode(this.#mode === "auto" ? auto : this.#mode);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#table.stopRefreshing();
    await this.#dht.stop();
    await this.#records.close();
  }

  /** The valid value that is stored here under a key, whichever DHT brought it. */
  async localValue(key: Uint8Array): Promise<Uint8Array | undefined> {
    const value = await this.#records.value(key);
    return value !== undefined && (await isValid(key, value)) ? value : undefined;
  }

  /** Peers in the routing table. */
  get size(): number {
    return this.#table.size;
  }

  /** The peers closest to a key: asked in turn until none knows a closer one. */
  closest(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    return this.#run("closest", this.#dht.getClosestPeers(key, { signal }), signal);
  }

  /** Ends with the first answer that names addresses of the peer. */
  async *findPeer(id: PeerId, signal: AbortSignal): RoutingEvents {
    const events = this.#run("findPeer", this.#dht.findPeer(id, { signal, useCache: false }), signal);
    try {
      for await (const event of events) {
        yield event;
        if (event.type === eventTypes.finalPeer) return;
      }
    } catch (error) {
      if ((error as Error).name !== "NotFoundError") throw error;
    }
  }

  /** Begins with the providers whose records are stored here. */
  findProviders(cid: CID, signal: AbortSignal): RoutingEvents {
    return this.#run("findProviders", this.#dht.findProviders(cid, { signal }), signal);
  }

  /** A `value` event for each record that is found. */
  async *get(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    let found = false;
    try {
      for await (const event of this.#run("get", this.#dht.get(key, { signal }), signal)) {
        found ||= event.type === eventTypes.value;
        yield event;
      }
    } catch (error) {
      // Afterwards the library sends the best record to peers that had a worse one. If one refuses, the search is good.
      if (!found || signal.aborted) throw error;
    }
  }

  /**
   * Stores a record here and sends it to the peers closest to the key: a `value` event for each that stored it.
   *
   * @throws NodeError when a better one is stored here
   */
  put(key: Uint8Array, value: Uint8Array, signal: AbortSignal): RoutingEvents {
    return this.#run("put", this.#dht.put(key, value, { signal }) as AsyncIterable<QueryEvent>, signal);
  }

  /** Announces to the peers closest to a block that this node provides it. */
  provide(cid: CID, signal: AbortSignal): RoutingEvents {
    return this.#run("provide", this.#dht.provide(cid, { signal }), signal);
  }

  async *#run(kind: QueryKind, events: AsyncIterable<QueryEvent>, signal: AbortSignal): RoutingEvents {
    signal.throwIfAborted();
    if (this.size === 0) yield queryError(NO_PEERS_TEXT);
    try {
      for await (const event of events) {
        this.#observe(event, signal);
        if (event.name === "DIAL_PEER" && this.#connections(event.peer).length > 0) continue;
        if (event.name === "PEER_RESPONSE" && event.from.equals(this.#self)) continue;
        yield* translate(kind, event);
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
      const useful = isUseful ? queried : this.#answers.get(name)?.useful;
      this.#answers.set(name, { queried, useful });
    } else if (event.name === "QUERY_ERROR" && !signal.aborted && this.#connections(event.from).length === 0) {
      // The library keeps unreachable peers while their bucket has room, and asks them again each time.
      void this.#table.remove(event.from);
    }
  }

  /** As `stats/dht` shows them: up to the last bucket with a peer in it. */
  buckets(): readonly Bucket[] {
    const buckets: BucketEntry[][] = [];
    for (const { id, commonPrefix, lastPing } of this.#table.peers()) {
      const answer = this.#answers.get(id.toString());
      (buckets[commonPrefix] ??= []).push({
        id,
        connected: this.#connections(id).length > 0,
        queried: new Date(Math.max(answer?.queried.getTime() ?? 0, lastPing)),
        useful: answer?.useful,
      });
    }
    return Array.from(buckets, (peers = [], at) => ({
      refreshed: this.#table.refreshedAt(at) ?? this.#selfLookedUpAt,
      peers,
    }));
  }

  #onPeerAdded(): void {
    if (!this.#wasEmpty) return;
    this.#wasEmpty = false;
    this.onFirstPeer?.();
    void this.#lookUpSelf();
  }

  #onPeerRemoved(id: PeerId): void {
    this.#wasEmpty = this.size === 0;
    this.#answers.delete(String(id));
  }

  /** Fills the routing table: the first peer leads to the ones closest to this node. Never rejects. */
  async #lookUpSelf(): Promise<void> {
    try {
      for await (const _ of this.closest(this.#self.toMultihash().bytes, this.#stop.signal));
      this.#selfLookedUpAt = new Date();
    } catch {
      // The library looks itself up again every few minutes.
    }
  }
}
