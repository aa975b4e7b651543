/** The routing system: who has what, where everybody is, and what others keep under a key. */
import type { Libp2p } from "libp2p";
import type { CID } from "multiformats/cid";
import type { Pins } from "../../content/pins/pins.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";
import * as searches from "./dual_dht.ts";
import { addressesOf, eventTypes, NOT_FOUND_TEXT, type PeerAddresses, type RoutingEvents } from "./events.ts";
import { ProvideQueue } from "./provide_queue.ts";
import { type LastReprovide, Reprovider } from "./reprovider.ts";
import { dhtOf } from "./services.ts";

export interface RoutingDeps {
  readonly libp2p: Libp2p;
  readonly repo: Pick<Repo, "config">;
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  readonly pins: Pins;
  readonly log: NodeLog;
}

export interface FindOptions {
  /** Providers that are enough. */
  readonly count: number;
  readonly signal: AbortSignal;
}

export interface SearchOptions extends searches.GetOptions {
  readonly signal: AbortSignal;
}

/** Of announcements since the start; milliseconds. */
export interface ProvideStat {
  readonly total: number;
  readonly averageMs: number;
  readonly lastReprovide: LastReprovide;
}

/** Milliseconds that one announcement may take. */
const PROVIDE_TIMEOUT_MS = 60_000;
/** Announcements at a time. */
const workers = { usual: 8, accelerated: 32 };
/** Providers of one block that the exchange of blocks may ask for. */
const MAX_PROVIDERS = 20;

/**
 * Events are those of the reference, in its order; errors that end a search come as an event first. Everything ends
 * with the signal.
 */
export class Routing {
  readonly #libp2p: Libp2p;
  readonly #dht: searches.DualDht | undefined;
  readonly #provideQueue: ProvideQueue;
  readonly #reprovider: Reprovider;
  /** Only what somebody tells it to announce is announced. */
  readonly #manualOnly: boolean;
  readonly #stat = { total: 0, milliseconds: 0 };

  /** @throws NodeError of a configuration that says what cannot be */
  constructor({ libp2p, repo, blocks, metadata, pins, log }: RoutingDeps) {
    const { config } = repo;
    const [wan, lan] = [dhtOf(libp2p, "wan"), dhtOf(libp2p, "lan")];
    this.#libp2p = libp2p;
    this.#dht = wan && lan && { wan, lan };
    this.#manualOnly = config.value("Experimental.StrategicProviding");
    const announcing = {
      metadata,
      log,
      workers: config.value("Experimental.AcceleratedDHTClient") ? workers.accelerated : workers.usual,
      ready: () => this.#dht !== undefined && searches.activeDht(this.#dht).size > 0,
      provide: (cid: CID, signal: AbortSignal) => this.#provideOne(cid, signal),
    };
    this.#provideQueue = new ProvideQueue(announcing);
    this.#reprovider = new Reprovider({ ...announcing, repo, blocks, pins });
  }

  async start(): Promise<void> {
    if (this.#dht === undefined || this.#manualOnly) return;
    for (const table of [this.#dht.wan, this.#dht.lan]) table.onFirstPeer = () => this.#drive();
    await this.#provideQueue.start();
    await this.#reprovider.start();
  }

  async stop(): Promise<void> {
    this.#reprovider.stop();
    await this.#provideQueue.stop();
  }

  #drive(): void {
    this.#provideQueue.run();
    this.#reprovider.runIfDue();
  }

  /** Undefined when the configuration wants none: every search then ends with `routing: not found`. */
  get dht(): searches.DualDht | undefined {
    return this.#dht;
  }

  /**
   * Where a peer is: `finalPeer`, from the address book when it is connected.
   *
   * @throws NodeError `routing: not found`, `failed to find any peer in table`
   */
  async *findPeer(id: PeerId, signal: AbortSignal): RoutingEvents {
    const here = await this.#connected(id);
    if (here !== undefined) yield { type: eventTypes.finalPeer, responses: [here] };
    else if (this.#dht === undefined) yield* searches.failWith(NOT_FOUND_TEXT);
    else yield* searches.findPeer(this.#dht, id, signal);
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

  /** Peers that say they have a block: `provider` for each, this node among them; finding none is no failure. */
  async *findProviders(cid: CID, { count, signal }: FindOptions): RoutingEvents {
    if (this.#dht !== undefined) yield* searches.findProviders(this.#dht, cid, count, signal);
  }

  /**
   * The providers alone, but for this node: for the exchange of blocks. Those of whom nobody has told where they are
   * are looked for when all others have been told.
   */
  async *findProviderPeers(cid: CID, signal: AbortSignal): AsyncGenerator<PeerAddresses, void, undefined> {
    const astray: PeerId[] = [];
    for await (const { type, responses } of this.findProviders(cid, { count: MAX_PROVIDERS, signal })) {
      const [provider] = type === eventTypes.provider ? (responses ?? []) : [];
      if (provider === undefined || provider.id.equals(this.#libp2p.peerId)) continue;
      const { id, multiaddrs } = provider;
      if (multiaddrs.length > 0 || this.#libp2p.getConnections(id).length > 0) yield provider;
      else astray.push(id);
    }
    for (const id of astray) {
      const multiaddrs = await this.addresses(id, signal).catch(() => []);
      if (multiaddrs.length > 0) yield { id, multiaddrs };
    }
  }

  /** The peers next to a key: `finalPeer` for each, the next one first. @throws NodeError without tables */
  async *closestPeers(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    if (this.#dht === undefined) throw new NodeError("routing service is not a DHT");
    yield* searches.closestPeers(this.#dht, key, signal);
  }

  /** The best record of a key: the last event, `value`. @throws NodeError `routing: not found` */
  async *get(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    if (this.#dht === undefined) yield* searches.failWith(NOT_FOUND_TEXT);
    else yield* searches.getValue(this.#dht, key, signal);
  }

  /** Valid records of a key as they are met, each better than those before; none when there is none. */
  async *search(key: Uint8Array, { signal, ...options }: SearchOptions): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#dht === undefined) return;
    for await (const { value } of searches.searchValue(this.#dht, key, signal, options)) {
      if (value !== undefined) yield value;
    }
  }

  /**
   * Keeps a record here and gives it to the peers next to its key: `value` for each that has taken it.
   *
   * @throws NodeError of a record that is not valid, or older than the one here; `failed to find any peer in table`
   */
  async *put(key: Uint8Array, value: Uint8Array, signal: AbortSignal): RoutingEvents {
    if (this.#dht === undefined) yield* searches.failWith("routing: operation or key not supported");
    else yield* searches.putValue(this.#dht, key, value, signal);
  }

  /** The record of a key that is kept here, and still valid. */
  async localValue(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#dht?.lan.localValue(key);
  }

  /** As `put`, told of nothing. */
  async putQuietly(key: Uint8Array, value: Uint8Array, signal: AbortSignal): Promise<void> {
    for await (const _ of this.put(key, value, signal));
  }

  /** Tells the peers next to a block that it can be had here. @throws NodeError when there is nobody to be told */
  async *provide(cid: CID, signal: AbortSignal): RoutingEvents {
    if (this.#dht === undefined) yield* searches.failWith("routing: operation or key not supported");
    else yield* searches.provide(this.#dht, cid, signal);
  }

  /** Has blocks announced in the background, now or as soon as there is somebody to be told. */
  announce(cids: readonly CID[]): void {
    if (this.#dht !== undefined && !this.#manualOnly) this.#provideQueue.add(cids);
  }

  /** Those that wait to be announced while there is somebody to be told. */
  get queued(): number {
    return this.#provideQueue.size;
  }

  get provideStat(): ProvideStat {
    const { total, milliseconds } = this.#stat;
    return { total, averageMs: total === 0 ? 0 : milliseconds / total, lastReprovide: this.#reprovider.last };
  }

  /**
   * Announces again what is here, as `Reprovider.Strategy` says; at once when only what is asked for is announced.
   *
   * @throws NodeError when there is nobody to be told, or a round is under way
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
