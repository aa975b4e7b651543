/** Finds all peers of a region of the key space, with few lookups. */
import { NodeError } from "../../../util/errors.ts";
import { commonPrefixLength } from "../patches/routing_table.ts";
import {
  isWithin,
  kadIdOf,
  type Lookups,
  MAX_LOOKUP_BITS,
  type Placed,
  type Prefix,
  parentOf,
  prefixOf,
  siblingOf,
} from "./keyspace.ts";

export interface Exploring<P extends Placed> {
  readonly lookups: Lookups;
  /** Peers that a lookup finds, and that a record is given to. */
  readonly replication: number;
  readonly network: {
    /** The peers closest to a multihash: `replication` of them, or all there are. */
    closestPeers(multihash: Uint8Array, signal: AbortSignal): Promise<readonly P[]>;
  };
  readonly signal: AbortSignal;
  /** The DHT is estimated to have more peers than one lookup finds: a lookup that finds fewer has failed. */
  readonly manyPeers: boolean;
}

export interface Region<P extends Placed> {
  readonly prefix: Prefix;
  readonly peers: readonly P[];
}

/**
 * All peers of the region: those whose keys begin with the prefix, or with the longest shorter one that has enough of them. So
 * they are the closest to each key in it.
 *
 * @throws NodeError when a lookup finds too few
 */
export async function explore<P extends Placed>(prefix: Prefix, exploring: Exploring<P>): Promise<Region<P>> {
  const found = new Map<string, P>();
  let open = [prefix];
  for (let within = prefix; ; within = parentOf(within)) {
    for (let part = open.pop(); part !== undefined; part = open.pop()) {
      open.push(...(await lookUp(part, found, exploring)));
    }
    const peers = [...found.values()].filter((peer) => isWithin(peer, within));
    if (peers.length >= exploring.replication || within === "") return { prefix: within, peers };
    open = [siblingOf(within)];
  }
}

/** Notes the peers that are found, and returns what of the part is not covered by them. */
async function lookUp<P extends Placed>(
  part: Prefix,
  found: Map<string, P>,
  { lookups, network, replication, signal, manyPeers }: Exploring<P>,
): Promise<Prefix[]> {
  signal.throwIfAborted();
  const key = lookups.keyIn(part.slice(0, MAX_LOOKUP_BITS));
  const kadId = kadIdOf(key);
  const peers = await network.closestPeers(key, signal);
  for (const peer of peers) found.set(Buffer.from(peer.kadId).toString("latin1"), peer);
  if (peers.length < replication) {
    if (peers.length === 0 || manyPeers) throw new NodeError(`a lookup found ${peers.length} peers alone`);
    return [];
  }
  return uncovered(part, kadId, peers);
}

/** Of the peers that share fewer bits with the key than the farthest that was found, some may not have been found. */
function uncovered(part: Prefix, kadId: Uint8Array, peers: readonly Placed[]): Prefix[] {
  const shared = Math.min(...peers.map((peer) => commonPrefixLength(kadId, peer.kadId)));
  const covered = Math.min(shared + 1, MAX_LOOKUP_BITS);
  const rest: Prefix[] = [];
  for (let length = part.length + 1; length <= covered; length += 1) rest.push(siblingOf(prefixOf(kadId, length)));
  return rest;
}

/** The region in its smallest parts that have enough peers each. */
export function split<P extends Placed>({ prefix, peers }: Region<P>, replication: number): readonly Region<P>[] {
  if (prefix.length >= MAX_LOOKUP_BITS) return [{ prefix, peers }];
  const halves = ["0", "1"].map((bit) => {
    const half = prefix + bit;
    return { prefix: half, peers: peers.filter((peer) => isWithin(peer, half)) };
  });
  if (halves.some((half) => half.peers.length < replication)) return [{ prefix, peers }];
  return halves.flatMap((half) => split(half, replication));
}

/** Bits of regions that have about half as many peers again as a record is given to, by the density around some keys. */
export function estimatedLength(
  found: readonly { readonly kadId: Uint8Array; readonly peers: readonly Placed[] }[],
  replication: number,
): number {
  if (found.some(({ peers }) => peers.length < replication)) return 0;
  const logs = found.map(({ kadId, peers }) => Math.max(...peers.map((peer) => logDistance(kadId, peer.kadId))));
  const mean = logs.reduce((sum, each) => sum + each, 0) / logs.length;
  return Math.max(0, Math.min(MAX_LOOKUP_BITS, Math.floor(-mean - Math.log2(1.5))));
}

/** Distance of two keys as the binary logarithm of its share of the key space; not positive. */
function logDistance(one: Uint8Array, other: Uint8Array): number {
  let distance = 0;
  for (let at = 0; at < 6; at += 1) distance = distance * 256 + ((one[at] as number) ^ (other[at] as number));
  return Math.log2(Math.max(distance, 1)) - 48;
}
