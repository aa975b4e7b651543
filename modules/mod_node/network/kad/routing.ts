/** The routing system: who has what, where everybody is, and what others keep under a key. */
import type { Libp2p } from "libp2p";
import type { CID } from "multiformats/cid";
import type { Pins } from "../../content/pins/pins.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import type { Blocks } from "../../storage/blockstore/blocks.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import type { Multiaddr } from "../swarm/multiaddr.ts";
import { addressesOf, eventTypes, notFoundText, type PeerAddresses, type RoutingEvents } from "./events.ts";
import { Announcements } from "./provide_queue.ts";
import { Rounds } from "./reprovider.ts";
import * as searches from "./searches.ts";
import { tableOf } from "./services.ts";

export interface RoutingParts {
  readonly libp2p: Libp2p;
  readonly repo: Pick<Repo, "config">;
  readonly blocks: Blocks;
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
export interface AnnouncingStat {
  readonly total: number;
  readonly average: number;
  readonly lastRound: { readonly announced: number; readonly duration: number };
}

/** Milliseconds that one announcement may take. */
const announceWithin = 60_000;
/** Announcements at a time. */
const workers = { usual: 8, accelerated: 32 };
/** Providers of one block that the exchange of blocks may ask for. */
const mostProviders = 20;

/**
 * Events are those of the reference, in its order; errors that end a search come as an event first. Everything ends
 * with the signal.
 */
export class Routing {
  readonly #libp2p: Libp2p;
  readonly #tables: searches.Tables | undefined;
  readonly #announcements: Announcements;
  readonly #rounds: Rounds;
  /** Only what somebody tells it to announce is announced. */
  readonly #quiet: boolean;
  readonly #stat = { total: 0, milliseconds: 0 };

  /** @throws NodeError of a configuration that says what cannot be */
  constructor({ libp2p, repo, blocks, metadata, pins, log }: RoutingParts) {
    const { config } = repo;
    const [wan, lan] = [tableOf(libp2p, "wan"), tableOf(libp2p, "lan")];
    this.#libp2p = libp2p;
    this.#tables = wan && lan && { wan, lan };
    this.#quiet = config.value("Experimental.StrategicProviding");
    const announcing = {
      metadata,
      log,
      workers: config.value("Experimental.AcceleratedDHTClient") ? workers.accelerated : workers.usual,
      ready: () => this.#tables !== undefined && searches.active(this.#tables).size > 0,
      announce: (cid: CID, signal: AbortSignal) => this.#announce(cid, signal),
    };
    this.#announcements = new Announcements(announcing);
    this.#rounds = new Rounds({ ...announcing, repo, blocks, pins });
  }

  async start(): Promise<void> {
    if (this.#tables === undefined || this.#quiet) return;
    for (const table of [this.#tables.wan, this.#tables.lan]) table.onPeers = () => this.#drive();
    await this.#announcements.start();
    await this.#rounds.start();
  }

  async stop(): Promise<void> {
    this.#rounds.stop();
    await this.#announcements.stop();
  }

  #drive(): void {
    this.#announcements.drive();
    this.#rounds.drive();
  }

  /** Undefined when the configuration wants none: every search then ends with `routing: not found`. */
  get tables(): searches.Tables | undefined {
    return this.#tables;
  }

  /**
   * Where a peer is: `finalPeer`, from the address book when it is connected.
   *
   * @throws NodeError `routing: not found`, `failed to find any peer in table`
   */
  async *findPeer(id: PeerId, signal: AbortSignal): RoutingEvents {
    const here = await this.#connected(id);
    if (here !== undefined) yield { type: eventTypes.finalPeer, responses: [here] };
    else if (this.#tables === undefined) yield* searches.refuse(notFoundText);
    else yield* searches.findPeer(this.#tables, id, signal);
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
    throw new NodeError(notFoundText);
  }

  /** Peers that say they have a block: `provider` for each, this node among them; finding none is no failure. */
  async *findProviders(cid: CID, { count, signal }: FindOptions): RoutingEvents {
    if (this.#tables !== undefined) yield* searches.findProviders(this.#tables, cid, count, signal);
  }

  /**
   * The providers alone, but for this node: for the exchange of blocks. Those of whom nobody has told where they are
   * are looked for when all others have been told.
   */
  async *find(cid: CID, signal: AbortSignal): AsyncGenerator<PeerAddresses, void, undefined> {
    const astray: PeerId[] = [];
    for await (const { type, responses } of this.findProviders(cid, { count: mostProviders, signal })) {
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
  async *query(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    if (this.#tables === undefined) throw new NodeError("routing service is not a DHT");
    yield* searches.query(this.#tables, key, signal);
  }

  /** The best record of a key: the last event, `value`. @throws NodeError `routing: not found` */
  async *get(key: Uint8Array, signal: AbortSignal): RoutingEvents {
    if (this.#tables === undefined) yield* searches.refuse(notFoundText);
    else yield* searches.get(this.#tables, key, signal);
  }

  /** Valid records of a key as they are met, each better than those before; none when there is none. */
  async *search(key: Uint8Array, { signal, ...options }: SearchOptions): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#tables === undefined) return;
    for await (const { value } of searches.search(this.#tables, key, signal, options)) {
      if (value !== undefined) yield value;
    }
  }

  /**
   * Keeps a record here and gives it to the peers next to its key: `value` for each that has taken it.
   *
   * @throws NodeError of a record that is not valid, or older than the one here; `failed to find any peer in table`
   */
  async *put(key: Uint8Array, value: Uint8Array, signal: AbortSignal): RoutingEvents {
    if (this.#tables === undefined) yield* searches.refuse("routing: operation or key not supported");
    else yield* searches.put(this.#tables, key, value, signal);
  }

  /** The record of a key that is kept here, and still valid. */
  async kept(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#tables?.lan.kept(key);
  }

  /** As `put`, told of nothing. */
  async store(key: Uint8Array, value: Uint8Array, signal: AbortSignal): Promise<void> {
    for await (const _ of this.put(key, value, signal));
  }

  /** Tells the peers next to a block that it can be had here. @throws NodeError when there is nobody to be told */
  async *provide(cid: CID, signal: AbortSignal): RoutingEvents {
    if (this.#tables === undefined) yield* searches.refuse("routing: operation or key not supported");
    else yield* searches.provide(this.#tables, cid, signal);
  }

  /** Has blocks announced in the background, now or as soon as there is somebody to be told. */
  announce(cids: readonly CID[]): void {
    if (this.#tables !== undefined && !this.#quiet) this.#announcements.add(cids);
  }

  /** Those that wait to be announced while there is somebody to be told. */
  get queued(): number {
    return this.#announcements.size;
  }

  get announcing(): AnnouncingStat {
    const { total, milliseconds } = this.#stat;
    return { total, average: total === 0 ? 0 : milliseconds / total, lastRound: this.#rounds.last };
  }

  /**
   * Announces again what is here, as `Reprovider.Strategy` says; at once when only what is asked for is announced.
   *
   * @throws NodeError when there is nobody to be told, or a round is under way
   */
  async reprovide(signal: AbortSignal): Promise<void> {
    if (this.#quiet) return;
    if (this.#libp2p.getPeers().length === 0) throw new NodeError("cannot reprovide, no connected peers");
    await this.#rounds.run(signal);
  }

  async #announce(cid: CID, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const either = AbortSignal.any([signal, AbortSignal.timeout(announceWithin)]);
    for await (const _ of this.provide(cid, either));
    this.#stat.total += 1;
    this.#stat.milliseconds += performance.now() - began;
  }
}
