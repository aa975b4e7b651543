/** Decides which keys each peer receives. */
import { bitOf, type HasKadId } from "./keyspace.ts";

/**
 * Allocates keys to peers: each key goes to its `copies` closest peers, or to all peers if there
 * are fewer.
 *
 * @param depth number of leading bits that all of them share
 */
export function allocate<K extends HasKadId, P extends HasKadId>(
  keys: readonly K[],
  peers: readonly P[],
  copies: number,
  depth: number,
): Map<P, K[]> {
  const shares = new Map<P, K[]>();
  allocateBelow(keys, peers, copies, depth, (peer, given) => {
    const share = shares.get(peer);
    if (share === undefined) shares.set(peer, [...given]);
    else for (const key of given) share.push(key);
  });
  return shares;
}

function allocateBelow<K extends HasKadId, P extends HasKadId>(
  keys: readonly K[],
  peers: readonly P[],
  copies: number,
  depth: number,
  take: (peer: P, keys: readonly K[]) => void,
): void {
  if (keys.length === 0) return;
  if (peers.length <= copies || depth >= 256) {
    for (const peer of peers.slice(0, copies)) take(peer, keys);
    return;
  }
  const keysByBit = halves(keys, depth);
  const peersByBit = halves(peers, depth);
  for (const bit of [0, 1] as const) {
    const near = peersByBit[bit];
    const far = peersByBit[1 - bit] as readonly P[];
    if (near.length >= copies) {
      allocateBelow(keysByBit[bit], near, copies, depth + 1, take);
      continue;
    }
    for (const peer of near) take(peer, keysByBit[bit]);
    allocateBelow(keysByBit[bit], far, copies - near.length, depth + 1, take);
  }
}

function halves<T extends HasKadId>(all: readonly T[], depth: number): readonly [T[], T[]] {
  const made: [T[], T[]] = [[], []];
  for (const each of all) made[bitOf(each.kadId, depth)].push(each);
  return made;
}
