/** Announces the keys of one region: finds its peers, and hands each of them all of its keys at once. */
import { NodeError } from "../../../util/errors.ts";
import { allocate } from "./allocate.ts";
import { type Exploring, explore, split } from "./explore.ts";
import type { Figures } from "./figures.ts";
import { isWithin, type Placed, type Prefix } from "./keyspace.ts";
import type { SweepKey } from "./keystore.ts";

/** What a DHT does for announcements. */
export interface SweepNetwork<P extends Placed> {
  /** Which DHT it is: each has its own regions. */
  readonly name: string;
  readonly closestPeers: Exploring<P>["network"]["closestPeers"];
  /** Sends provider records over one stream, and resolves with how many were sent: fewer when the peer goes meanwhile. */
  addProvider(peer: P, multihashes: readonly Uint8Array[], signal: AbortSignal): Promise<number>;
  /** Notes that this node provides them, for those who ask it. */
  keep(multihashes: readonly Uint8Array[]): void;
}

export interface Announcing<P extends Placed> extends Exploring<P> {
  readonly network: SweepNetwork<P>;
  /** Peers that are sent to at a time. */
  readonly connections: number;
  readonly figures: Figures;
}

export interface Announced {
  /** The smallest regions with enough peers in which the keys were announced. Together they may be more than was asked for. */
  readonly prefixes: readonly Prefix[];
  /** Keys that at least one peer was given. */
  readonly keys: number;
}

/** Keys of a region up to which each is looked up by itself. */
const FEW_KEYS = 2;
/** Share of the peers of a region that have to take records. */
const MIN_REACHED = 0.2;

/**
 * Announces the keys of a region.
 *
 * @param keysOf those of a region, which may be larger than the one that was asked for
 * @throws NodeError when its peers are not found, or few of them take records
 */
export async function announceRegion<P extends Placed>(
  prefix: Prefix,
  keysOf: (prefix: Prefix) => AsyncIterable<readonly SweepKey[]>,
  announcing: Announcing<P>,
): Promise<Announced> {
  const region = await explore(prefix, announcing);
  if (region.peers.length === 0) throw new NodeError("no peers were found");
  const { figures, replication } = announcing;
  const parts = split(region, replication);
  figures.explored(parts.map(({ peers }) => peers.length));
  const tally = new Tally();
  for await (const keys of keysOf(region.prefix)) {
    for (const part of parts) {
      const own = parts.length === 1 ? keys : keys.filter((key) => isWithin(key, part.prefix));
      await send(own, allocate(own, part.peers, replication, part.prefix.length), announcing, tally);
    }
  }
  figures.reached(tally.reached.size, tally.asked.size);
  if (tally.reached.size < tally.asked.size * MIN_REACHED) {
    throw new NodeError(`${tally.asked.size - tally.reached.size} of ${tally.asked.size} peers took no records`);
  }
  return { prefixes: parts.map((part) => part.prefix), keys: tally.keys };
}

/** Announces keys one by one, where they are too few for a region to be explored. @throws NodeError when nobody took one */
export async function announceKeys<P extends Placed>(
  keys: readonly SweepKey[],
  announcing: Announcing<P>,
): Promise<number> {
  const tally = new Tally();
  for (const key of keys) {
    announcing.signal.throwIfAborted();
    const peers = await announcing.network.closestPeers(key.multihash, announcing.signal);
    await send([key], new Map(peers.map((peer) => [peer, [key]])), announcing, tally);
  }
  if (tally.keys === 0) throw new NodeError("no peer took a record");
  return tally.keys;
}

export const areFew = (keys: number): boolean => keys <= FEW_KEYS;

class Tally {
  readonly asked = new Set<Placed>();
  readonly reached = new Set<Placed>();
  keys = 0;
}

async function send<P extends Placed>(
  keys: readonly SweepKey[],
  shares: ReadonlyMap<P, readonly SweepKey[]>,
  { network, connections, figures, signal }: Announcing<P>,
  tally: Tally,
): Promise<void> {
  if (keys.length === 0) return;
  network.keep(keys.map(({ multihash }) => multihash));
  const sent = new Map<P, number>();
  const left = shares.entries();
  const work = async () => {
    for (const [peer, share] of left) {
      signal.throwIfAborted();
      tally.asked.add(peer);
      const multihashes = share.map(({ multihash }) => multihash);
      const count = await network.addProvider(peer, multihashes, signal).catch(() => 0);
      signal.throwIfAborted();
      sent.set(peer, count);
      figures.sent(count);
      if (count > 0) tally.reached.add(peer);
    }
  };
  await Promise.all(Array.from({ length: Math.min(connections, shares.size) }, work));
  const lost = countLost(shares, sent);
  tally.keys += keys.length - lost;
  figures.keysAnnounced(keys.length - lost, lost);
}

/** Keys that no peer was given. */
function countLost<P>(shares: ReadonlyMap<P, readonly SweepKey[]>, sent: ReadonlyMap<P, number>): number {
  const sentTo = (peer: P) => sent.get(peer) ?? 0;
  const lost = new Set<SweepKey>();
  for (const [peer, share] of shares) if (sentTo(peer) < share.length) for (const key of share) lost.add(key);
  if (lost.size === 0) return 0;
  for (const [peer, share] of shares) for (const key of share.slice(0, sentTo(peer))) lost.delete(key);
  return lost.size;
}
