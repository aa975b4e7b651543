/**
 * CIDs of links are views of their block: as long as one is used, all of the block is in memory.
 */

import type { CID } from "multiformats/cid";
import { ownBytes } from "../../util/own_bytes.ts";
import { castCid } from "./text.ts";

/** Bytes of a buffer that a CID may keep in memory. */
const MAX_VIEWED_BYTES = 64 * 1024;
/** Bytes of CIDs that are copied into one array: one for each costs more than the copy. */
const COPIED_BYTES = 512;

/** The pool of a buffer. */
interface Pool {
  retain(bytes: Uint8Array): void;
}

/** Whether a block has a buffer that its CIDs may not keep. */
export const isLarge = ({ buffer }: Uint8Array): boolean => buffer.byteLength > MAX_VIEWED_BYTES;

/** A CID that keeps no large block in memory. */
export const detachedCid = (cid: CID): CID => (isLarge(cid.multihash.bytes) ? castCid(ownBytes(cid.bytes)) : cid);

/**
 * The links of a block, as they may be used once its buffer is released to the pool, which keeps no
 * large one for them.
 */
export function lasting(links: readonly CID[], block: Uint8Array, pool: Pool | undefined): readonly CID[] {
  const [first] = links;
  if (pool === undefined || first === undefined) return links;
  if (isLarge(block)) return copiesOf(links);
  pool.retain(first.multihash.bytes);
  return links;
}

/** Each keeps in memory those that stand beside it, which take as much as its object does. */
function copiesOf(cids: readonly CID[]): readonly CID[] {
  let room = new Uint8Array(0);
  return cids.map(({ bytes }, at) => {
    if (bytes.length > room.length) {
      const left = (cids.length - at) * bytes.length;
      room = new Uint8Array(Math.max(Math.min(COPIED_BYTES, left), bytes.length));
    }
    const copy = room.subarray(0, bytes.length);
    copy.set(bytes);
    room = room.subarray(bytes.length);
    return castCid(copy);
  });
}
