/**
 * Announces the keys of one region: finds its peers, and sends each of them all of its keys at
 * once.
 */
import { failure } from "../../../util/errors.ts";
import { allocate } from "./allocate.ts";
import { type Exploring, explore, split } from "./explore.ts";
import { type HasKadId, isWithin, type Prefix } from "./keyspace.ts";
import type { SweepKey } from "./keystore.ts";
import type { SweepMetrics } from "./sweep_metrics.ts";

/** Operations of a DHT that announcements use. */
export interface SweepNetwork<P extends HasKadId> {
  /** Name of the DHT; each DHT has its own regions. */
  readonly name: string;
  readonly closestPeers: Exploring<P>["network"]["closestPeers"];
  /**
   * Sends provider records over one stream, and resolves to the number of sent records, which is
   * smaller if the peer disconnects meanwhile.
   */
  addProvider(peer: P, multihashes: readonly Uint8Array[], signal: AbortSignal): Promise<number>;
  /**
   * Stores provider records of this node for these multihashes locally, for peers that ask this
   * node.
   */
  storeLocally(multihashes: readonly Uint8Array[]): void;
}

export interface Announcing<P extends HasKadId> extends Exploring<P> {
  readonly network: SweepNetwork<P>;
  /** Maximum number of peers to send to concurrently. */
  readonly connections: number;
  readonly metrics: SweepMetrics;
}

export interface Announced {
  /**
   * The smallest regions with enough peers in which the keys were announced. Together they may be
   * larger than the requested region.
   */
  readonly prefixes: readonly Prefix[];
  /** Number of keys that at least one peer accepted. */
  readonly keys: number;
}

/** Maximum number of keys in a region that are looked up individually. */
const FEW_KEYS = 2;
/** Minimum share of a region's peers that must accept records. */
const MIN_REACHED = 0.2;

/**
 * Announces the keys of a region.
 *
 * @param keysOf yields the keys of a region, which may be larger than the requested one @throws
 * NodeError if its peers are not found, or few of them accept records
 */
export async function announceRegion<P extends HasKadId>(
  prefix: Prefix,
  keysOf: (prefix: Prefix) => AsyncIterable<readonly SweepKey[]>,
  announcing: Announcing<P>,
): Promise<Announced> {
  const region = await explore(prefix, announcing);
  if (region.peers.length === 0) throw failure("ANNOUNCE_FAILED", { reason: "no peers were found" });
  const { metrics, replication } = announcing;
  const parts = split(region, replication);
  metrics.explored(parts.map(({ peers }) => peers.length));
  const tally = new Tally();
  for await (const keys of keysOf(region.prefix)) {
    for (const part of parts) {
      const own = parts.length === 1 ? keys : keys.filter((key) => isWithin(key, part.prefix));
      await send(own, allocate(own, part.peers, replication, part.prefix.length), announcing, tally);
    }
  }
  metrics.reached(tally.reached.size, tally.requested.size);
  if (tally.reached.size < tally.requested.size * MIN_REACHED) {
    throw failure("ANNOUNCE_FAILED", {
      reason: `${tally.requested.size - tally.reached.size} of ${tally.requested.size} peers accepted no records`,
    });
  }
  return { prefixes: parts.map((part) => part.prefix), keys: tally.keys };
}

/**
 * Announces keys one by one, if they are too few to explore a region. @throws NodeError if no peer
 * accepted any
 */
export async function announceKeys<P extends HasKadId>(
  keys: readonly SweepKey[],
  announcing: Announcing<P>,
): Promise<number> {
  const tally = new Tally();
  for (const key of keys) {
    announcing.signal.throwIfAborted();
    const peers = await announcing.network.closestPeers(key.multihash, announcing.signal);
    await send([key], new Map(peers.map((peer) => [peer, [key]])), announcing, tally);
  }
  if (tally.keys === 0) throw failure("ANNOUNCE_FAILED", { reason: "no peer accepted a record" });
  return tally.keys;
}

export const areFew = (keys: number): boolean => keys <= FEW_KEYS;

class Tally {
  readonly requested = new Set<HasKadId>();
  readonly reached = new Set<HasKadId>();
  keys = 0;
}

async function send<P extends HasKadId>(
  keys: readonly SweepKey[],
  shares: ReadonlyMap<P, readonly SweepKey[]>,
  { network, connections, metrics, signal }: Announcing<P>,
  tally: Tally,
): Promise<void> {
  if (keys.length === 0) return;
  network.storeLocally(keys.map(({ multihash }) => multihash));
  const sent = new Map<P, number>();
  const left = shares.entries();
  const work = async () => {
    for (const [peer, share] of left) {
      signal.throwIfAborted();
      tally.requested.add(peer);
      const multihashes = share.map(({ multihash }) => multihash);
      const count = await network.addProvider(peer, multihashes, signal).catch(() => 0);
      signal.throwIfAborted();
      sent.set(peer, count);
      metrics.sent(count);
      if (count > 0) tally.reached.add(peer);
    }
  };
  await Promise.all(Array.from({ length: Math.min(connections, shares.size) }, work));
  const lost = countLost(shares, sent);
  tally.keys += keys.length - lost;
  metrics.keysAnnounced(keys.length - lost, lost);
}

/** Counts the keys that no peer received. */
function countLost<P>(shares: ReadonlyMap<P, readonly SweepKey[]>, sent: ReadonlyMap<P, number>): number {
  const sentTo = (peer: P) => sent.get(peer) ?? 0;
  const lost = new Set<SweepKey>();
  for (const [peer, share] of shares) if (sentTo(peer) < share.length) for (const key of share) lost.add(key);
  if (lost.size === 0) return 0;
  for (const [peer, share] of shares) for (const key of share.slice(0, sentTo(peer))) lost.delete(key);
  return lost.size;
}
