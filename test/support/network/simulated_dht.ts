/**
 * A DHT of many peers in memory, on a virtual clock. It measures what the lookups and announcements
 * of one node cost. Each peer knows up to twenty others of each distance, as in Kademlia.
 */
import type { SweepNetwork } from "#node/network/kad/sweep/announce.ts";
import { type HasKadId, kadIdOf } from "#node/network/kad/sweep/keyspace.ts";
import { LRU } from "#node/util/lru.ts";
import type { VirtualClock } from "../virtual_clock.ts";

export interface SimulatedPeer extends HasKadId {
  readonly number: number;
  /** First 48 bits of its key. */
  readonly at: number;
}

/** Traffic of the node so far. */
export interface Traffic {
  lookups: number;
  /** Requests for closer peers and records. */
  queries: number;
  records: number;
  connections: number;
  bytes: number;
}

const CLOSEST = 20;
/** Parallel queries of a lookup, as in the library. */
const ALPHA = 3;
/** Maximum number of open connections. */
const MAX_CONNECTIONS = 900;
/** Milliseconds of a round trip, and of opening a connection. */
const ROUND_TRIP_MS = 100;
const DIAL_MS = 300;
/** Bytes per millisecond of one stream. */
const SPEED = 1000;
/**
 * Bytes of a request for closer peers with its response, of a record, and of opening a connection.
 */
const QUERY_BYTES = 40 + CLOSEST * 100;
const RECORD_BYTES = 180;
const DIAL_BYTES = 2500;
const BITS = 48;
/** Position of the node itself in the key space. */
const OWN_POSITION = 0x5555_5555_5555;

export interface SimulationOptions {
  readonly peers: number;
  readonly clock: VirtualClock;
  /** Records which peer has which keys, as the latin1 text of the multihash. */
  readonly keepsRecords?: boolean;
}

export class SimulatedDht implements SweepNetwork<SimulatedPeer> {
  readonly name = "simulated";
  /** Peers in the order of their keys. */
  readonly peers: readonly SimulatedPeer[];
  readonly traffic: Traffic = { lookups: 0, queries: 0, records: 0, connections: 0, bytes: 0 };
  /** Recorded keys by peer. A key that was sent twice occurs twice. */
  readonly records = new Map<SimulatedPeer, string[]>();
  /** Whether a peer rejects records. */
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

  /** Returns the peers closest to a key, as only an observer of the whole network can know them. */
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
    const records = this.records.get(peer) ?? [];
    this.records.set(peer, records);
    for (const multihash of multihashes) records.push(Buffer.from(multihash).toString("latin1"));
    return multihashes.length;
  }

  storeLocally(): void {
    // Nobody sends requests to this node.
  }

  /** Queries the closest known peers until the closest twenty have responded. */
  #search(at: number): { readonly found: readonly SimulatedPeer[]; readonly queries: number; readonly dials: number } {
    const known = new Set(this.#suggestedBy(OWN_POSITION, at));
    const queried = new Set<SimulatedPeer>();
    let dials = 0;
    for (;;) {
      const near = nearest([...known], at, CLOSEST);
      const next = near.find((peer) => !queried.has(peer));
      if (next === undefined) return { found: near, queries: queried.size, dials };
      queried.add(next);
      if (this.#connect(next)) dials += 1;
      for (const peer of this.#suggestedBy(next.at, at)) known.add(peer);
    }
  }

  /** Returns the peers that a peer at `from` suggests to a node that looks for `to`. */
  #suggestedBy(from: number, to: number): readonly SimulatedPeer[] {
    let bits = 0;
    while (bits < BITS && Math.floor(from / 2 ** (BITS - bits - 1)) === Math.floor(to / 2 ** (BITS - bits - 1)))
      bits += 1;
    const bucket = this.#range(to, Math.min(BITS, bits + 1));
    if (bucket.length >= CLOSEST) return sample(bucket, from);
    // A peer also knows the peers around itself.
    let around = this.#range(from, bits);
    for (; around.length < CLOSEST && bits > 0; bits -= 1) around = this.#range(from, bits - 1);
    return nearest(around, to, CLOSEST);
  }

  /** Returns peers whose keys share the first `bits` bits with the key at `at`. */
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

  /** Returns whether a connection had to be opened. */
  #connect(peer: SimulatedPeer): boolean {
    const isNew = this.#connected.get(peer) === undefined;
    this.#connected.set(peer, true);
    if (!isNew) return false;
    this.traffic.connections += 1;
    this.traffic.bytes += DIAL_BYTES;
    return true;
  }
}

/** Returns the exclusive or of two numbers of 48 bits. */
function distance(one: number, other: number): number {
  const half = 2 ** 24;
  return (Math.floor(one / half) ^ Math.floor(other / half)) * half + ((one % half) ^ (other % half));
}

const nearest = (peers: readonly SimulatedPeer[], at: number, count: number): readonly SimulatedPeer[] =>
  peers.toSorted((a, b) => distance(a.at, at) - distance(b.at, at)).slice(0, count);

/** Chooses twenty of the peers; the same seed gives the same ones. */
function sample(peers: readonly SimulatedPeer[], seed: number): readonly SimulatedPeer[] {
  const chosen = new Set<SimulatedPeer>();
  for (let state = (seed % 2 ** 31) | 1; chosen.size < CLOSEST; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    chosen.add(peers[Math.floor((state / 2 ** 32) * peers.length)] as SimulatedPeer);
  }
  return [...chosen];
}
