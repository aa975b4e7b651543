/** CIDs of links are views of their block: as long as one is used, all of the block is in memory. */
import { CID } from "multiformats/cid";

/** Bytes of a buffer that a CID may keep in memory. */
const MAX_VIEWED_BYTES = 64 * 1024;

/** The pool of a buffer. */
interface Pool {
  retain(bytes: Uint8Array): void;
}

/** Whether a block has a buffer that its CIDs may not keep. */
export const isLarge = ({ buffer }: Uint8Array): boolean => buffer.byteLength > MAX_VIEWED_BYTES;

/** A CID that keeps no large block in memory. */
export const detachedCid = (cid: CID): CID =>
  isLarge(cid.multihash.bytes) ? CID.decode(Uint8Array.from(cid.bytes)) : cid;

/** The links of a block, as they may be used once its buffer is released to the pool, which keeps no large one for them. */
export function lasting(links: readonly CID[], block: Uint8Array, pool: Pool | undefined): readonly CID[] {
  const [first] = links;
  if (pool === undefined || first === undefined) return links;
  if (isLarge(block)) return links.map(detachedCid);
  pool.retain(first.multihash.bytes);
  return links;
}
