/**
 * One DHT, of the whole internet or of the local network: presents its queries as events of the
 * RPC, and shows its routing table.
 */
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
  /** Time of its last response to a query. */
  readonly queried: Date | undefined;
  /** Time of its last response that named a peer or carried a record. */
  readonly useful: Date | undefined;
}

/**
 * A bucket of the routing table. Its index is the number of leading bits that the keys of its peers
 * share with the node's own key.
 */
export interface Bucket {
  readonly refreshed: Date | undefined;
  readonly peers: readonly BucketEntry[];
}

interface LastResponse {
  readonly queried: Date;
  readonly useful: Date | undefined;
}

/** Maximum number of peers whose last response is remembered; a routing table has fewer peers. */
const MAX_REMEMBERED_RESPONSES = 4096;

/** Registers with libp2p as a service that discovers peers; only this node uses its queries. */
export class Dht implements Startable {
  readonly name: DhtName;
  readonly [peerDiscoverySymbol]: PeerDiscovery;
  /** Announces many blocks at once. */
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
  readonly #responses = new LRU<string, LastResponse>(MAX_REMEMBERED_RESPONSES);
  readonly #stop = new AbortController();
  /** Time of the last lookup of the peers closest to this node. */
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

  /** Sets whether this node responds to queries of other peers. */
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

  /** Resolves to the valid value that is stored locally under a key, whichever DHT it came from. */
  async localValue(key: Uint8Array): Promise<Uint8Array | undefined> {
    const value = await this.#records.value(key);
    return value !== undefined && (await isValid(key, value)) ? value : undefined;
  }

  /** Number of peers in the routing table. */
  get size(): number {
    return this.#table.size;
  }

  /** Finds the peers closest to a key: queries peers until none knows a closer one. */
  closest(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    return this.#run("closest", this.#dht.getClosestPeers(key, { signal }), signal);
  }

  /** Finds a peer. Ends with the first response that contains addresses of the peer. */
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

  /** Finds providers of a block. Begins with those whose records are stored locally. */
  findProviders(cid: CID, signal: AbortSignal): RoutingEvents {
    return this.#run("findProviders", this.#dht.findProviders(cid, { signal }), signal);
  }

  /** Yields a `value` event for each record that is found. */
  async *get(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    let found = false;
    try {
      for await (const event of this.#run("get", this.#dht.get(key, { signal }), signal)) {
        found ||= event.type === eventTypes.value;
        yield event;
      }
    } catch (error) {
      // At the end, the library sends the best record to peers that had a worse one. If one of them
      // refuses it, the search has nevertheless succeeded.
      if (!found || signal.aborted) throw error;
    }
  }

  /**
   * Stores a record locally and sends it to the peers closest to the key. Yields a `value` event
   * for each peer that stored it.
   *
   * @throws NodeError if a better record is stored locally
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
      const useful = isUseful ? queried : this.#responses.get(name)?.useful;
      this.#responses.set(name, { queried, useful });
    } else if (event.name === "QUERY_ERROR" && !signal.aborted && this.#connections(event.from).length === 0) {
      // The library leaves unreachable peers in the table while their bucket has room, and would
      // query them every time.
      void this.#table.remove(event.from);
    }
  }

  /** Returns the buckets for `stats/dht`, up to the last one that contains a peer. */
  buckets(): readonly Bucket[] {
    const buckets: BucketEntry[][] = [];
    for (const { id, commonPrefix, lastPing } of this.#table.peers()) {
      const response = this.#responses.get(id.toString());
      (buckets[commonPrefix] ??= []).push({
        id,
        connected: this.#connections(id).length > 0,
        queried: new Date(Math.max(response?.queried.getTime() ?? 0, lastPing)),
        useful: response?.useful,
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
    this.#responses.delete(String(id));
  }

  /**
   * Fills the routing table: the first peer leads to the peers closest to this node. Never rejects.
   */
  async #lookUpSelf(): Promise<void> {
    try {
      for await (const _ of this.closest(this.#self.toMultihash().bytes, this.#stop.signal));
      this.#selfLookedUpAt = new Date();
    } catch {
      // The library repeats the lookup every few minutes.
    }
  }
}
