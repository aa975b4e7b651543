/** Says which peer gets which keys. */
import { bitOf, type Placed } from "./keyspace.ts";

/**
 * The keys of each peer: every key is at as many peers as are asked for, the closest to it, or at all there are.
 *
 * @param depth leading bits that all of them have in common
 */
export function allocate<K extends Placed, P extends Placed>(
  keys: readonly K[],
  peers: readonly P[],
  copies: number,
  depth: number,
): Map<P, K[]> {
  const shares = new Map<P, K[]>();
  give(keys, peers, copies, depth, (peer, given) => {
    const share = shares.get(peer);
    if (share === undefined) shares.set(peer, [...given]);
    else for (const key of given) share.push(key);
  });
  return shares;
}

function give<K extends Placed, P extends Placed>(
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
  const [keysByBit, peersByBit] = [halves(keys, depth), halves(peers, depth)];
  for (const bit of [0, 1] as const) {
    const [near, far] = [peersByBit[bit], peersByBit[1 - bit] as readonly P[]];
    if (near.length >= copies) {
      give(keysByBit[bit], near, copies, depth + 1, take);
      continue;
    }
    for (const peer of near) take(peer, keysByBit[bit]);
    give(keysByBit[bit], far, copies - near.length, depth + 1, take);
  }
}

function halves<T extends Placed>(all: readonly T[], depth: number): readonly [T[], T[]] {
  const made: [T[], T[]] = [[], []];
  for (const each of all) made[bitOf(each.kadId, depth)].push(each);
  return made;
}
