/** Finds all peers of a region of the key space, with few lookups. */
import { failure } from "../../../util/errors.ts";
import { commonPrefixLength } from "../patches/routing_table.ts";
import {
  type HasKadId,
  isWithin,
  kadIdOf,
  type Lookups,
  MAX_LOOKUP_BITS,
  type Prefix,
  parentOf,
  prefixOf,
  siblingOf,
} from "./keyspace.ts";

export interface Exploring<P extends HasKadId> {
  readonly lookups: Lookups;
  /** Number of peers that a lookup finds, and that receive a record. */
  readonly replication: number;
  readonly network: {
    /**
     * Resolves to the peers closest to a multihash: `replication` of them, or all if there are
     * fewer.
     */
    closestPeers(multihash: Uint8Array, signal: AbortSignal): Promise<readonly P[]>;
  };
  readonly signal: AbortSignal;
  /**
   * Whether the DHT is estimated to have more peers than one lookup finds. If so, a lookup that
   * finds fewer has failed.
   */
  readonly manyPeers: boolean;
}

export interface Region<P extends HasKadId> {
  readonly prefix: Prefix;
  readonly peers: readonly P[];
}

/**
 * Finds all peers of a region: those whose keys begin with the prefix, or with the longest shorter
 * prefix that has enough peers. They include the closest peers of each key in the region.
 *
 * @throws NodeError if a lookup finds too few peers
 */
export async function explore<P extends HasKadId>(prefix: Prefix, exploring: Exploring<P>): Promise<Region<P>> {
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

/** Records the found peers, and returns the parts of the region that they do not cover. */
async function lookUp<P extends HasKadId>(
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
    if (peers.length === 0 || manyPeers)
      throw failure("ANNOUNCE_FAILED", { reason: `a lookup found only ${peers.length} peers` });
    return [];
  }
  return uncovered(part, kadId, peers);
}

/**
 * Returns the parts in which peers may be missing: those that share fewer bits with the key than
 * the farthest found peer does.
 */
function uncovered(part: Prefix, kadId: Uint8Array, peers: readonly HasKadId[]): Prefix[] {
  const shared = Math.min(...peers.map((peer) => commonPrefixLength(kadId, peer.kadId)));
  const covered = Math.min(shared + 1, MAX_LOOKUP_BITS);
  const rest: Prefix[] = [];
  for (let length = part.length + 1; length <= covered; length += 1) rest.push(siblingOf(prefixOf(kadId, length)));
  return rest;
}

/** Splits the region into its smallest parts that have enough peers each. */
export function split<P extends HasKadId>({ prefix, peers }: Region<P>, replication: number): readonly Region<P>[] {
  if (prefix.length >= MAX_LOOKUP_BITS) return [{ prefix, peers }];
  const halves = ["0", "1"].map((bit) => {
    const half = prefix + bit;
    return { prefix: half, peers: peers.filter((peer) => isWithin(peer, half)) };
  });
  if (halves.some((half) => half.peers.length < replication)) return [{ prefix, peers }];
  return halves.flatMap((half) => split(half, replication));
}

/**
 * Estimates the prefix length of regions that contain about 1.5 times the number of peers that
 * receive a record, from the density of peers around the sample keys.
 */
export function estimatedLength(
  found: readonly { readonly kadId: Uint8Array; readonly peers: readonly HasKadId[] }[],
  replication: number,
): number {
  if (found.some(({ peers }) => peers.length < replication)) return 0;
  const logs = found.map(({ kadId, peers }) => Math.max(...peers.map((peer) => logDistance(kadId, peer.kadId))));
  const mean = logs.reduce((sum, each) => sum + each, 0) / logs.length;
  return Math.max(0, Math.min(MAX_LOOKUP_BITS, Math.floor(-mean - Math.log2(1.5))));
}

/**
 * Returns the distance of two keys as the binary logarithm of its share of the key space; never
 * positive.
 */
function logDistance(one: Uint8Array, other: Uint8Array): number {
  let distance = 0;
  for (let at = 0; at < 6; at += 1) distance = distance * 256 + ((one[at] as number) ^ (other[at] as number));
  return Math.log2(Math.max(distance, 1)) - 48;
}
