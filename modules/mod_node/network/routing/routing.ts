/** The routing system: providers of blocks, addresses of peers, and records by key, from the routers of the configuration. */
import type { Libp2p } from "libp2p";
import type { CID } from "multiformats/cid";
import type { Pins } from "../../content/pins/pins.ts";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import type { SharedLog } from "../../storage/shared/log.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import * as queries from "../kad/dual_dht.ts";
import {
  addressesOf,
  eventTypes,
  NOT_FOUND_TEXT,
  type PeerAddresses,
  type RoutingEvent,
  type RoutingEvents,
} from "../kad/events.ts";
import { dhtOf } from "../kad/services.ts";
import { compare } from "../kad/validators.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";
import { configuredRouter, dhtModes } from "./from_config.ts";
import type { ProviderRecord } from "./provider_record.ts";
import { type ProvideStat, Providing } from "./providing.ts";
import type { Asking, Router } from "./router.ts";

export interface RoutingDeps {
  readonly libp2p: Libp2p;
  readonly repo: Pick<Repo, "config">;
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  readonly hostMetadata: MetadataStore;
  /** The log of the hosts that have the blocks and the metadata in common; undefined where this is one host's store. */
  readonly shared?: Pick<SharedLog, "session" | "sessions"> | undefined;
  readonly pins: Pins;
  /** The root of the mutable files. */
  readonly filesRoot?: ((signal: AbortSignal) => Promise<CID>) | undefined;
  readonly log: NodeLog;
}

export interface FindOptions extends Asking {
  /** Ends after so many providers. */
  readonly count: number;
}

/** Providers of one block that `findProviderPeers` finds. */
const MAX_PROVIDERS = 20;
const NOT_SUPPORTED_TEXT = "routing: operation or key not supported";

/**
 * Queries yield the events of go-ipfs, in its order; an error that ends a query is an event first. All end with
 * the signal.
 */
export class Routing {
  readonly #libp2p: Libp2p;
  readonly #dht: queries.DualDht | undefined;
  readonly #log: NodeLog;
  #router: Router;
  /** Of which providers nobody hears, by id. */
  #ignored: ReadonlySet<string>;
  readonly #providing: Providing;
  readonly #config: Repo["config"];

  /** @throws NodeError for an invalid configuration */
  constructor(deps: RoutingDeps) {
    const { libp2p, repo, log } = deps;
    const [wan, lan] = [dhtOf(libp2p, "wan"), dhtOf(libp2p, "lan")];
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

  /** @throws NodeError for an entry that is no peer id */
  #toIgnore(): ReadonlySet<string> {
    const ids = this.#config.value("Routing.IgnoreProviders") ?? [];
    return new Set(
      ids.map((id) => {
        try {
          return parsePeerId(id).toString();
        } catch (cause) {
          throw new NodeError(`Routing.IgnoreProviders: ${(cause as Error).message}`, { cause });
        }
      }),
    );
  }

  /** Goes by `Routing.IgnoreProviders` as it is now. @throws NodeError for an entry that is no peer id: then the former ones stay */
  renewIgnored(): void {
    this.#ignored = this.#toIgnore();
  }

  async start(): Promise<void> {
    await this.#providing.start();
  }

  /**
   * Goes by `Routing` and `Ipns.DelegatedPublishers` as they are now.
   *
   * @throws NodeError for an invalid configuration, and where it asks for a DHT and there is none, or for none and there is
   * one: then the former goes on
   */
  async renewRouter(): Promise<void> {
    const modes = dhtModes(this.#config);
    const dhts = this.#dht;
    if ((modes === undefined) !== (dhts === undefined)) {
      throw new NodeError("to and from none it counts at the next start");
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

  /** What is announced in the background. */
  get providing(): Providing {
    return this.#providing;
  }

  /** Who is asked. With `Routing.Type` "none" it has no method. */
  get router(): Router {
    return this.#router;
  }

  /** Undefined where there is none. */
  get dht(): queries.DualDht | undefined {
    return this.#dht;
  }

  /**
   * Finds the addresses of a peer: `finalPeer`, from the peer store when it is connected.
   *
   * @throws NodeError `routing: not found`, `failed to find any peer in table`
   */
  async *findPeer(id: PeerId, signal: AbortSignal, how: Pick<Asking, "delegated"> = {}): RoutingEvents {
    const here = await this.#connected(id);
    if (here !== undefined) return yield { type: eventTypes.finalPeer, responses: [here] };
    for await (const event of this.#router.findPeer?.(id, { signal, ...how }) ?? []) {
      yield event;
      if (event.type === eventTypes.finalPeer) return;
    }
    yield* queries.failWith(NOT_FOUND_TEXT);
  }

  async #connected(id: PeerId): Promise<PeerAddresses | undefined> {
    if (this.#libp2p.getConnections(id).length === 0) return undefined;
    const { addresses } = await this.#libp2p.peerStore.get(id);
    return addressesOf({ id, multiaddrs: addresses.map(({ multiaddr }) => multiaddr) });
  }

  /** The addresses that `findPeer` ends with. @throws NodeError as it does */
  async addresses(id: PeerId, signal?: AbortSignal): Promise<readonly Multiaddr[]> {
    for await (const { type, responses } of this.findPeer(id, signal ?? new AbortController().signal)) {
      if (type === eventTypes.finalPeer) return responses?.[0]?.multiaddrs ?? [];
    }
    throw new NodeError(NOT_FOUND_TEXT);
  }

  /**
   * Providers of a block, this node included: `provider` for each, and again where another router knows more addresses.
   * Finding none is no failure. Those of `Routing.IgnoreProviders` are left out.
   */
  async *findProviders(cid: CID, asking: FindOptions): RoutingEvents {
    const told = new Map<string, Set<string>>();
    for await (const event of this.#router.findProviders?.(cid, asking) ?? []) {
      const [provider] = event.type === eventTypes.provider ? (event.responses ?? []) : [];
      if (provider !== undefined && this.#ignored.has(provider.id.toString())) continue;
      if (provider === undefined || isNews(told, provider)) yield event;
      if (told.size === asking.count) return;
    }
  }

  /**
   * The providers of a block, without this node, for bitswap and pubsub. Those without known addresses come last, when
   * they have been looked up.
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
   * The peers closest to a key: `finalPeer` for each, the closest first.
   *
   * @throws NodeError where there is no DHT
   */
  async *closestPeers(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    if (this.#dht === undefined) throw new NodeError("routing service is not a DHT");
    yield* queries.closestPeers(this.#dht, key, signal);
  }

  /** The best record of a key: the last event, `value`. @throws NodeError `routing: not found` */
  async *get(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    let best: RoutingEvent | undefined;
    for await (const event of this.#better(key, { signal })) {
      if (event.value !== undefined) best = event;
      else if (event.type === eventTypes.peerResponse && event.id !== undefined)
        yield { type: event.type, id: event.id };
      else yield event;
    }
    if (best === undefined) yield* queries.failWith(NOT_FOUND_TEXT);
    else yield best;
  }

  /** Valid records of a key, each better than the ones before; none where no router answers. */
  async *search(key: Uint8Array, asking: Asking): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const { value } of this.#better(key, asking)) if (value !== undefined) yield value;
    } catch (error) {
      asking.signal.throwIfAborted();
      if (!(error instanceof NodeError)) throw error;
    }
  }

  /** The events of a search without records that are no better than those before: each router knows its own alone. */
  async *#better(key: Uint8Array, asking: Asking): RoutingEvents {
    let best: Uint8Array | undefined;
    for await (const event of this.#router.search?.(key, asking) ?? []) {
      const { value } = event;
      if (value !== undefined && best !== undefined && compare(key, value, best) <= 0) continue;
      best = value ?? best;
      yield event;
    }
  }

  /**
   * Hands a record to the routers, of which a DHT stores it here and at the peers closest to its key: `value` for each that
   * stored it.
   *
   * @throws NodeError for a record that is invalid or older than the one here; `failed to find any peer in table`
   */
  async *put(
    key: Uint8Array,
    value: Uint8Array,
    signal: AbortSignal,
    how: Pick<Asking, "delegated"> = {},
  ): RoutingEvents {
    yield* this.#router.put?.({ key, value }, { signal, ...how }) ?? queries.failWith(NOT_SUPPORTED_TEXT);
  }

  /** The valid record of a key that is stored here. */
  async localValue(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#dht?.lan.localValue(key);
  }

  /** As `put`, without events. */
  async putQuietly(...record: Parameters<Routing["put"]>): Promise<void> {
    for await (const _ of this.put(...record));
  }

  /** Announces this node as a provider to the peers closest to a block. @throws NodeError when the tables are empty */
  async *provide(cid: CID, signal: AbortSignal): RoutingEvents {
    yield* this.#router.provide?.(cid, { signal }) ?? queries.failWith(NOT_SUPPORTED_TEXT);
  }

  /** Provides roots in the background, now or when a peer enters a routing table. */
  announce(cids: readonly CID[]): void {
    this.#providing.announce(cids);
  }

  /** CIDs that wait to be provided; 0 while the routing tables are empty. */
  get queued(): number {
    return this.#providing.queued;
  }

  get provideStat(): ProvideStat {
    return this.#providing.stat;
  }

  /** See `Providing.reprovide`. */
  reprovide(signal: AbortSignal): Promise<void> {
    return this.#providing.reprovide(signal);
  }
}

/** Notes a provider; whether it, or one of its addresses, was not told before. */
function isNews(told: Map<string, Set<string>>, { id, multiaddrs }: PeerAddresses): boolean {
  const known = told.get(id.toString());
  const addresses = known ?? new Set();
  const before = addresses.size;
  for (const address of multiaddrs) addresses.add(address.toString());
  told.set(id.toString(), addresses);
  return known === undefined || addresses.size > before;
}
