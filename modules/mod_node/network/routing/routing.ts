/**
 * The routing system: finds providers of blocks, addresses of peers, and records by key, with the
 * routers of the configuration.
 */
import type { Libp2p } from "libp2p";
import type { CID } from "multiformats/cid";
import type { Pins } from "../../content/pins/pins.ts";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import type { SharedLog } from "../../storage/shared/log.ts";
import { failure, NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import * as queries from "../kad/dual_dht.ts";
import { addressesOf, eventTypes, type PeerAddresses, type RoutingEvent, type RoutingEvents } from "../kad/events.ts";
import { dhtOf } from "../kad/services.ts";
import { compare } from "../kad/validators.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";
import { configuredRouter, dhtModes } from "./from_config.ts";
import type { ProviderRecord } from "./provider_record.ts";
import { type ProvideStat, Providing } from "./providing.ts";
import type { QueryOptions, Router } from "./router.ts";

export interface RoutingDeps {
  readonly libp2p: Libp2p;
  readonly repo: Pick<Repo, "config">;
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  readonly hostMetadata: MetadataStore;
  /**
   * The log of the hosts that share the blocks and the metadata; undefined if the store belongs to
   * one host.
   */
  readonly shared?: Pick<SharedLog, "session" | "sessions"> | undefined;
  readonly pins: Pins;
  /** Resolves to the root of the mutable namespace (MFS). */
  readonly filesRoot?: ((signal: AbortSignal) => Promise<CID>) | undefined;
  readonly log: NodeLog;
}

export interface FindOptions extends QueryOptions {
  /** Number of providers after which the query ends. */
  readonly count: number;
}

/** Maximum number of providers of one block that `findProviderPeers` finds. */
const MAX_PROVIDERS = 20;
const notSupported = () => failure("NOT_SUPPORTED", { reason: "routing: operation or key not supported" });

/**
 * Queries yield the events of go-ipfs, in its order; an error that ends a query is reported as an
 * event first. All queries end with the signal.
 */
export class Routing {
  readonly #libp2p: Libp2p;
  readonly #dht: queries.DualDht | undefined;
  readonly #log: NodeLog;
  #router: Router;
  /** Ids of the providers to ignore. */
  #ignored: ReadonlySet<string>;
  readonly #providing: Providing;
  readonly #config: Repo["config"];

  /** @throws NodeError for an invalid configuration */
  constructor(deps: RoutingDeps) {
    const { libp2p, repo, log } = deps;
    const wan = dhtOf(libp2p, "wan");
    const lan = dhtOf(libp2p, "lan");
    this.#libp2p = libp2p;
    this.#dht = wan && lan && { wan, lan };
    this.#config = repo.config;
    this.#log = log;
    this.#router = this.#configured();
    this.#ignored = this.#toIgnore();
    this.#providing = new Providing({
      ...deps,
      dhts: this.#dht,
      router: () => this.#router,
      provide: (cid, signal) => this.provide(cid, signal),
    });
  }

  #configured(): Router {
    return configuredRouter({ config: this.#config, dhts: this.#dht, log: this.#log });
  }

  /** @throws NodeError for an entry that is not a peer id */
  #toIgnore(): ReadonlySet<string> {
    const ids = this.#config.value("Routing.IgnoreProviders") ?? [];
    return new Set(
      ids.map((id) => {
        try {
          return parsePeerId(id).toString();
        } catch (cause) {
          throw failure("CONFIG_INVALID", { reason: `Routing.IgnoreProviders: ${(cause as Error).message}` }, cause);
        }
      }),
    );
  }

  /**
   * Applies the current value of `Routing.IgnoreProviders`. @throws NodeError for an entry that is
   * not a peer id; the previous value then stays in effect
   */
  renewIgnored(): void {
    this.#ignored = this.#toIgnore();
  }

  async start(): Promise<void> {
    await this.#providing.start();
  }

  /**
   * Applies the current values of `Routing` and `Ipns.DelegatedPublishers`.
   *
   * @throws NodeError for an invalid configuration, and for one that requires starting or stopping
   * the DHT; the previous router then stays in use
   */
  async renewRouter(): Promise<void> {
    const modes = dhtModes(this.#config);
    const dhts = this.#dht;
    if ((modes === undefined) !== (dhts === undefined)) {
      throw failure("RESTART_NEEDED", { reason: "a change to or from `none` takes effect at the next start" });
    }
    const before = this.#router;
    this.#router = this.#configured();
    if (modes !== undefined) {
      await dhts?.wan.setMode(modes.wan);
      await dhts?.lan.setMode(modes.lan);
    }
    await this.#providing.renewRouter(before);
  }

  async stop(): Promise<void> {
    await this.#providing.stop();
  }

  /** The background announcements. */
  get providing(): Providing {
    return this.#providing;
  }

  /** The current router. With `Routing.Type` "none" it has no methods. */
  get router(): Router {
    return this.#router;
  }

  /** The DHTs; undefined if the node has none. */
  get dht(): queries.DualDht | undefined {
    return this.#dht;
  }

  /**
   * Finds the addresses of a peer: yields `finalPeer`, from the peer store if it is connected.
   *
   * @throws NodeError `routing: not found`, `failed to find any peer in table`
   */
  async *findPeer(id: PeerId, signal: AbortSignal, how: Pick<QueryOptions, "delegated"> = {}): RoutingEvents {
    const here = await this.#connected(id);
    if (here !== undefined) return yield { type: eventTypes.finalPeer, responses: [here] };
    for await (const event of this.#router.findPeer?.(id, { signal, ...how }) ?? []) {
      yield event;
      if (event.type === eventTypes.finalPeer) return;
    }
    yield* queries.failWith(failure("ROUTING_NOT_FOUND"));
  }

  async #connected(id: PeerId): Promise<PeerAddresses | undefined> {
    if (this.#libp2p.getConnections(id).length === 0) return undefined;
    const { addresses } = await this.#libp2p.peerStore.get(id);
    return addressesOf({ id, multiaddrs: addresses.map(({ multiaddr }) => multiaddr) });
  }

  /** Resolves to the addresses that `findPeer` ends with. @throws NodeError as `findPeer` */
  async addresses(id: PeerId, signal?: AbortSignal): Promise<readonly Multiaddr[]> {
    for await (const { type, responses } of this.findPeer(id, signal ?? new AbortController().signal)) {
      if (type === eventTypes.finalPeer) return responses?.[0]?.multiaddrs ?? [];
    }
    throw failure("ROUTING_NOT_FOUND");
  }

  /**
   * Finds providers of a block, including this node: yields `provider` for each, and again if
   * another router knows more addresses. Finding none is not an error. Providers of
   * `Routing.IgnoreProviders` are omitted.
   */
  async *findProviders(cid: CID, options: FindOptions): RoutingEvents {
    const reported = new Map<string, Set<string>>();
    for await (const event of this.#router.findProviders?.(cid, options) ?? []) {
      const [provider] = event.type === eventTypes.provider ? (event.responses ?? []) : [];
      if (provider !== undefined && this.#ignored.has(provider.id.toString())) continue;
      if (provider === undefined || isNewProvider(reported, provider)) yield event;
      if (reported.size === options.count) return;
    }
  }

  /**
   * Yields the providers of a block without this node, for bitswap and pubsub. Providers without
   * known addresses come last, after a lookup.
   */
  async *findProviderPeers(cid: CID, signal: AbortSignal): AsyncGenerator<ProviderRecord, void, undefined> {
    const unlocated = new Map<string, ProviderRecord>();
    for await (const { type, responses } of this.findProviders(cid, { count: MAX_PROVIDERS, signal })) {
      const [provider] = type === eventTypes.provider ? (responses ?? []) : [];
      if (provider === undefined || provider.id.equals(this.#libp2p.peerId)) continue;
      const { id, multiaddrs: addresses, protocols = [] } = provider;
      const record = { id, addresses, protocols };
      if (addresses.length === 0 && this.#libp2p.getConnections(id).length === 0) {
        unlocated.set(id.toString(), record);
        continue;
      }
      unlocated.delete(id.toString());
      yield record;
    }
    for (const record of unlocated.values()) {
      const addresses = await this.addresses(record.id, signal).catch(() => []);
      if (addresses.length > 0) yield { ...record, addresses };
    }
  }

  /**
   * Finds the peers closest to a key: yields `finalPeer` for each, the closest first.
   *
   * @throws NodeError if there is no DHT
   */
  async *closestPeers(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    if (this.#dht === undefined) throw failure("DHT_MISSING");
    yield* queries.closestPeers(this.#dht, key, signal);
  }

  /**
   * Finds the best record of a key: the last event is `value`. @throws NodeError
   * `routing: not found`
   */
  async *get(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    let best: RoutingEvent | undefined;
    for await (const event of this.#improvingRecords(key, { signal })) {
      if (event.value !== undefined) best = event;
      else if (event.type === eventTypes.peerResponse && event.id !== undefined)
        yield { type: event.type, id: event.id };
      else yield event;
    }
    if (best === undefined) yield* queries.failWith(failure("ROUTING_NOT_FOUND"));
    else yield best;
  }

  /**
   * Yields valid records of a key, each better than the previous ones; none if no router responds.
   */
  async *search(key: Uint8Array, options: QueryOptions): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const { value } of this.#improvingRecords(key, options)) if (value !== undefined) yield value;
    } catch (error) {
      options.signal.throwIfAborted();
      if (!(error instanceof NodeError)) throw error;
    }
  }

  /**
   * Yields the events of a search, except for records that are not better than earlier ones: each
   * router only knows its own records.
   */
  async *#improvingRecords(key: Uint8Array, options: QueryOptions): RoutingEvents {
    let best: Uint8Array | undefined;
    for await (const event of this.#router.search?.(key, options) ?? []) {
      const { value } = event;
      if (value !== undefined && best !== undefined && compare(key, value, best) <= 0) continue;
      best = value ?? best;
      yield event;
    }
  }

  /**
   * Passes a record to the routers. A DHT stores it locally and at the peers closest to its key,
   * and yields `value` for each that stored it.
   *
   * @throws NodeError for a record that is invalid or older than the stored one;
   * `failed to find any peer in table`
   */
  async *put(
    key: Uint8Array,
    value: Uint8Array,
    signal: AbortSignal,
    how: Pick<QueryOptions, "delegated"> = {},
  ): RoutingEvents {
    yield* this.#router.put?.({ key, value }, { signal, ...how }) ?? queries.failWith(notSupported());
  }

  /** Resolves to the valid record of a key that is stored locally. */
  async localValue(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#dht?.lan.localValue(key);
  }

  /** Like `put`, without events. */
  async putQuietly(...record: Parameters<Routing["put"]>): Promise<void> {
    for await (const _ of this.put(...record));
  }

  /**
   * Announces this node as a provider to the peers closest to a block. @throws NodeError if the
   * tables are empty
   */
  async *provide(cid: CID, signal: AbortSignal): RoutingEvents {
    yield* this.#router.provide?.(cid, { signal }) ?? queries.failWith(notSupported());
  }

  /** Provides roots in the background, now or when a peer enters a routing table. */
  announce(cids: readonly CID[]): void {
    this.#providing.announce(cids);
  }

  /** Number of CIDs that wait to be provided; 0 while the routing tables are empty. */
  get queued(): number {
    return this.#providing.queued;
  }

  get provideStat(): ProvideStat {
    return this.#providing.stat;
  }

  /** Announces stored blocks again: see `Providing.reprovide`. */
  reprovide(signal: AbortSignal): Promise<void> {
    return this.#providing.reprovide(signal);
  }
}

/** Records a provider, and returns whether it or one of its addresses is new. */
function isNewProvider(reported: Map<string, Set<string>>, { id, multiaddrs }: PeerAddresses): boolean {
  const known = reported.get(id.toString());
  const addresses = known ?? new Set();
  const before = addresses.size;
  for (const address of multiaddrs) addresses.add(address.toString());
  reported.set(id.toString(), addresses);
  return known === undefined || addresses.size > before;
}
