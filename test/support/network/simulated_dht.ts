/**
 * A DHT of many peers in memory, on a clock of its own: what lookups and announcements of one node
 * take. Each peer knows up to twenty others of each distance, as in Kademlia.
 */
import type { SweepNetwork } from "#node/network/kad/sweep/announce.ts";
import { type HasKadId, kadIdOf } from "#node/network/kad/sweep/keyspace.ts";
import { LRU } from "#node/util/lru.ts";
import type { VirtualClock } from "../virtual_clock.ts";

export interface SimulatedPeer extends HasKadId {
  readonly number: number;
  /** The first 48 bits of its key. */
  readonly at: number;
}

/** What it took. */
export interface Traffic {
  lookups: number;
  /** Requests for closer peers, and records. */
  queries: number;
  records: number;
  connections: number;
  bytes: number;
}

const CLOSEST = 20;
/** Queries at a time of a lookup, as in the library. */
const ALPHA = 3;
/** Connections that are kept. */
const MAX_CONNECTIONS = 900;
/** Milliseconds there and back, and until a connection is open. */
const ROUND_TRIP_MS = 100;
const DIAL_MS = 300;
/** Bytes per millisecond of one stream. */
const SPEED = 1000;
/**
 * Bytes of a request for closer peers with its answer, of a record, and of opening a connection.
 */
const QUERY_BYTES = 40 + CLOSEST * 100;
const RECORD_BYTES = 180;
const DIAL_BYTES = 2500;
const BITS = 48;
/** Where the node itself is. */
const OWN_PLACE = 0x5555_5555_5555;

export interface SimulationOptions {
  readonly peers: number;
  readonly clock: VirtualClock;
  /** Notes which peer has which keys, by the text of the multihash in latin1. */
  readonly keepsRecords?: boolean;
}

export class SimulatedDht implements SweepNetwork<SimulatedPeer> {
  readonly name = "simulated";
  /** In order of their keys. */
  readonly peers: readonly SimulatedPeer[];
  readonly traffic: Traffic = { lookups: 0, queries: 0, records: 0, connections: 0, bytes: 0 };
  /** Keys by peer, where they are noted; a key that was sent twice stands there twice. */
  readonly records = new Map<SimulatedPeer, string[]>();
  /** Peers that take no records. */
  refuses: (peer: SimulatedPeer) => boolean = () => false;
  readonly #clock: VirtualClock;
  readonly #keepsRecords: boolean;
  readonly #connected = new LRU<SimulatedPeer, true>(MAX_CONNECTIONS);

  constructor({ peers, clock, keepsRecords = false }: SimulationOptions) {
    this.#clock = clock;
    this.#keepsRecords = keepsRecords;
    const made = Array.from({ length: peers }, (_, number) => {
      const kadId = kadIdOf(Buffer.from(`peer ${number}`));
      return { number, kadId, at: Buffer.from(kadId).readUIntBE(0, 6) };
    });
    this.peers = made.sort((a, b) => a.at - b.at);
  }

  /** The peers closest to a key, as nobody in the network knows them. */
  closest(kadId: Uint8Array, count = CLOSEST): readonly SimulatedPeer[] {
    const at = Buffer.from(kadId).readUIntBE(0, 6);
    for (let bits = BITS; ; bits -= 1) {
      const found = this.#range(at, bits);
      if (found.length >= count || bits === 0) return nearest(found, at, count);
    }
  }

  async closestPeers(multihash: Uint8Array, signal: AbortSignal): Promise<readonly SimulatedPeer[]> {
    const at = Buffer.from(kadIdOf(multihash)).readUIntBE(0, 6);
    this.traffic.lookups += 1;
    const { found, queries, dials } = this.#search(at);
    this.traffic.queries += queries;
    this.traffic.bytes += queries * QUERY_BYTES;
    await this.#clock.sleep(((queries + ALPHA - 1) / ALPHA) * ROUND_TRIP_MS + (dials / ALPHA) * DIAL_MS);
    signal.throwIfAborted();
    return found;
  }

  async addProvider(peer: SimulatedPeer, multihashes: readonly Uint8Array[], signal: AbortSignal): Promise<number> {
    const dialled = this.#connect(peer);
    await this.#clock.sleep((dialled ? DIAL_MS : 0) + ROUND_TRIP_MS);
    signal.throwIfAborted();
    if (this.refuses(peer)) return 0;
    this.traffic.records += multihashes.length;
    this.traffic.bytes += multihashes.length * RECORD_BYTES;
    await this.#clock.sleep((multihashes.length * RECORD_BYTES) / SPEED);
    signal.throwIfAborted();
    if (!this.#keepsRecords) return multihashes.length;
    const kept = this.records.get(peer) ?? [];
    this.records.set(peer, kept);
    for (const multihash of multihashes) kept.push(Buffer.from(multihash).toString("latin1"));
    return multihashes.length;
  }

  storeLocally(): void {
    // Nobody asks this node.
  }

  /** Asks whoever is closest of those that are known, until the closest twenty have answered. */
  #search(at: number): { readonly found: readonly SimulatedPeer[]; readonly queries: number; readonly dials: number } {
    const known = new Set(this.#told(OWN_PLACE, at));
    const asked = new Set<SimulatedPeer>();
    let dials = 0;
    for (;;) {
      const near = nearest([...known], at, CLOSEST);
      const next = near.find((peer) => !asked.has(peer));
      if (next === undefined) return { found: near, queries: asked.size, dials };
      asked.add(next);
      if (this.#connect(next)) dials += 1;
      for (const peer of this.#told(next.at, at)) known.add(peer);
    }
  }

  /** Those that a peer at a place names to somebody who looks for another. */
  #told(from: number, to: number): readonly SimulatedPeer[] {
    let bits = 0;
    while (bits < BITS && Math.floor(from / 2 ** (BITS - bits - 1)) === Math.floor(to / 2 ** (BITS - bits - 1)))
      bits += 1;
    const bucket = this.#range(to, Math.min(BITS, bits + 1));
    if (bucket.length >= CLOSEST) return sample(bucket, from);
    // Those around itself are known to a peer.
    let around = this.#range(from, bits);
    for (; around.length < CLOSEST && bits > 0; bits -= 1) around = this.#range(from, bits - 1);
    return nearest(around, to, CLOSEST);
  }

  /** Peers whose keys begin with so many bits of that one. */
  #range(at: number, bits: number): readonly SimulatedPeer[] {
    const width = 2 ** (BITS - bits);
    const first = Math.floor(at / width) * width;
    return this.peers.slice(this.#index(first), this.#index(first + width));
  }

  #index(at: number): number {
    let low = 0;
    let high = this.peers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.peers[middle] as SimulatedPeer).at < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether a connection had to be opened. */
  #connect(peer: SimulatedPeer): boolean {
    const isNew = this.#connected.get(peer) === undefined;
    this.#connected.set(peer, true);
    if (!isNew) return false;
    this.traffic.connections += 1;
    this.traffic.bytes += DIAL_BYTES;
    return true;
  }
}

/** Exclusive or of 48 bits. */
function distance(one: number, other: number): number {
  const half = 2 ** 24;
  return (Math.floor(one / half) ^ Math.floor(other / half)) * half + ((one % half) ^ (other % half));
}

const nearest = (peers: readonly SimulatedPeer[], at: number, count: number): readonly SimulatedPeer[] =>
  peers.toSorted((a, b) => distance(a.at, at) - distance(b.at, at)).slice(0, count);

/** Twenty of them, the same ones for the same asker. */
function sample(peers: readonly SimulatedPeer[], seed: number): readonly SimulatedPeer[] {
  const chosen = new Set<SimulatedPeer>();
  for (let state = (seed % 2 ** 31) | 1; chosen.size < CLOSEST; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    chosen.add(peers[Math.floor((state / 2 ** 32) * peers.length)] as SimulatedPeer);
  }
  return [...chosen];
}
