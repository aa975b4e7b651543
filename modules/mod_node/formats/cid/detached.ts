/**
 * CIDs of links are views of their block, so a single CID that is in use keeps the whole block in
 * memory. The functions here copy CIDs out of large blocks.
 */

import type { CID } from "multiformats/cid";
import { ownBytes } from "../../util/own_bytes.ts";
import { castCid } from "./text.ts";

/** Maximum size in bytes of a buffer that a CID may keep in memory. */
const MAX_VIEWED_BYTES = 64 * 1024;
/**
 * Size in bytes of an array into which several CIDs are copied. An array per CID costs more than
 * the copy.
 */
const COPIED_BYTES = 512;

/** The pool that a buffer belongs to. */
interface Pool {
  retain(bytes: Uint8Array): void;
}

/** Whether the buffer of a block is too large to be kept in memory by its CIDs. */
export const isLarge = ({ buffer }: Uint8Array): boolean => buffer.byteLength > MAX_VIEWED_BYTES;

/** Returns an equal CID that keeps no large block in memory. */
export const detachedCid = (cid: CID): CID => (isLarge(cid.multihash.bytes) ? castCid(ownBytes(cid.bytes)) : cid);

/**
 * Returns the links of a block so that they stay valid after the block's buffer is released to the
 * pool. Links of a large block are copied; otherwise the pool keeps the buffer.
 */
export function lasting(links: readonly CID[], block: Uint8Array, pool: Pool | undefined): readonly CID[] {
  const [first] = links;
  if (pool === undefined || first === undefined) return links;
  if (isLarge(block)) return copiesOf(links);
  pool.retain(first.multihash.bytes);
  return links;
}

/**
 * CIDs that share an array keep each other in memory, which costs about as much as the CID objects
 * themselves.
 */
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
