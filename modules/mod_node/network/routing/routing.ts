/** The routing system: providers of blocks, addresses of peers, and records by key, from the routers of the configuration. */
import type { Libp2p } from "libp2p";
import type { CID } from "multiformats/cid";
import type { Pins } from "../../content/pins/pins.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import type { SharedLog } from "../../storage/shared/log.ts";
import { WorkShares } from "../../storage/shared/work_shares.ts";
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
import { ProvideQueue } from "../kad/provide_queue.ts";
import { type LastReprovide, Reprovider } from "../kad/reprovider.ts";
import { dhtOf } from "../kad/services.ts";
import { compare } from "../kad/validators.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";
import { configuredRouter, dhtModes } from "./from_config.ts";
import type { ProviderRecord } from "./provider_record.ts";
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
  readonly log: NodeLog;
}

export interface FindOptions extends Asking {
  /** Ends after so many providers. */
  readonly count: number;
}

/** What was provided since the start. */
export interface ProvideStat {
  readonly total: number;
  readonly averageMs: number;
  readonly lastReprovide: LastReprovide;
}

/** Milliseconds in which one CID has to be provided. */
const PROVIDE_TIMEOUT_MS = 60_000;
/** CIDs that are provided at a time; the second with `Experimental.AcceleratedDHTClient`. */
const WORKERS = 8;
const ACCELERATED_WORKERS = 32;
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
  readonly #provideQueue: ProvideQueue;
  readonly #reprovider: Reprovider;
  /** Of what is provided, with other hosts. */
  readonly #shares: WorkShares | undefined;
  /** Nothing is provided without a command (`Experimental.StrategicProviding`). */
  #manualOnly: boolean;
  readonly #config: Repo["config"];
  readonly #stat = { total: 0, milliseconds: 0 };

  /** @throws NodeError for an invalid configuration */
  constructor({ libp2p, repo, blocks, metadata, hostMetadata, shared, pins, log }: RoutingDeps) {
    const { config } = repo;
    const [wan, lan] = [dhtOf(libp2p, "wan"), dhtOf(libp2p, "lan")];
    this.#libp2p = libp2p;
    this.#dht = wan && lan && { wan, lan };
    this.#config = config;
    this.#log = log;
    this.#router = this.#configured();
    this.#manualOnly = config.value("Experimental.StrategicProviding");
    this.#shares = shared && new WorkShares({ log: shared, metadata, name: "providing" });
    const providing = {
      log,
      shares: this.#shares,
      workers: () => (config.value("Experimental.AcceleratedDHTClient") ? ACCELERATED_WORKERS : WORKERS),
      ready: () => !this.#manualOnly && this.#router.provide !== undefined && this.#router.canProvide?.() === true,
      provide: (cid: CID, signal: AbortSignal) => this.#provideOne(cid, signal),
    };
    this.#provideQueue = new ProvideQueue({ ...providing, metadata });
    this.#reprovider = new Reprovider({ ...providing, metadata: hostMetadata, repo, blocks, pins });
  }

  #configured(): Router {
    return configuredRouter({ config: this.#config, dhts: this.#dht, log: this.#log });
  }

  async start(): Promise<void> {
    if (this.#router.provide === undefined || this.#manualOnly) return;
    await this.#startProviding();
  }

  async #startProviding(): Promise<void> {
    for (const table of Object.values(this.#dht ?? {})) table.onFirstPeer = () => this.#onFirstPeer();
    if (this.#router.canProvide?.() === true) this.#shares?.join();
    await this.#provideQueue.start();
    await this.#reprovider.start();
  }

  /** Goes by `Experimental.StrategicProviding` as it is now. */
  async renewProviding(): Promise<void> {
    const before = this.#manualOnly;
    this.#manualOnly = this.#config.value("Experimental.StrategicProviding");
    if (this.#router.provide === undefined || before === this.#manualOnly) return;
    if (this.#manualOnly) await this.#pauseProviding();
    else await this.#startProviding();
  }

  async #pauseProviding(): Promise<void> {
    this.#reprovider.pause();
    await this.#shares?.leave();
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
    const provides = this.#router.provide !== undefined;
    if (this.#manualOnly || provides === (before.provide !== undefined)) return;
    if (provides) await this.#startProviding();
    else await this.#pauseProviding();
  }

  /** Goes by `Reprovider` as it is now. @throws NodeError for an invalid value */
  renewReprovider(): Promise<void> {
    return this.#reprovider.renew();
  }

  async stop(): Promise<void> {
    this.#reprovider.stop();
    await this.#provideQueue.stop();
    await this.#shares?.leave();
  }

  #onFirstPeer(): void {
    if (this.#manualOnly) return;
    this.#shares?.join();
    this.#provideQueue.run();
    this.#reprovider.runIfDue();
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
   * Finding none is no failure.
   */
  async *findProviders(cid: CID, asking: FindOptions): RoutingEvents {
    const told = new Map<string, Set<string>>();
    for await (const event of this.#router.findProviders?.(cid, asking) ?? []) {
      const [provider] = event.type === eventTypes.provider ? (event.responses ?? []) : [];
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
    if (this.#router.provide !== undefined && !this.#manualOnly) this.#provideQueue.add(cids);
  }

  /**
   * Provides single new blocks in the background, after the roots; without a peer in a routing table that is left to the
   * reprovider.
   */
  announceBlocks(cids: readonly CID[]): void {
    if (this.#router.provide !== undefined && !this.#manualOnly) this.#provideQueue.addBlocks(cids);
  }

  /** CIDs that wait to be provided; 0 while the routing tables are empty. */
  get queued(): number {
    return this.#provideQueue.size;
  }

  get provideStat(): ProvideStat {
    const { total, milliseconds } = this.#stat;
    return { total, averageMs: total === 0 ? 0 : milliseconds / total, lastReprovide: this.#reprovider.last };
  }

  /**
   * Provides again what is stored here, as `Reprovider.Strategy` says; nothing with `Experimental.StrategicProviding`.
   *
   * @throws NodeError when no peer is connected, the tables are empty, or the reprovider is running
   */
  async reprovide(signal: AbortSignal): Promise<void> {
    if (this.#manualOnly) return;
    if (this.#libp2p.getPeers().length === 0) throw new NodeError("cannot reprovide, no connected peers");
    await this.#reprovider.run(signal);
  }

  async #provideOne(cid: CID, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const either = AbortSignal.any([signal, AbortSignal.timeout(PROVIDE_TIMEOUT_MS)]);
    for await (const _ of this.provide(cid, either));
    this.#stat.total += 1;
    this.#stat.milliseconds += performance.now() - began;
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
