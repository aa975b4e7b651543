/**
 * The nodes of the `object` commands: dag-pb nodes with their CID. A changed node gets a CID of the
 * same form.
 */
import type { CID } from "multiformats/cid";
import { dagPb } from "../../../formats/cid/codecs.ts";
import { hashCoded, hashUnavailable, identity, sha256 } from "../../../formats/cid/hashes.ts";
import { cumulativeSize, decodePb, encodePb, type PbNode } from "../../../formats/dag_pb/dag_pb.ts";
import { linksOf } from "../../../formats/ipld/links.ts";
import { makeBlock } from "../../../storage/blockstore/make_block.ts";
import type { Block } from "../../../storage/blockstore/store.ts";
import { failure } from "../../../util/errors.ts";
import type { ReadBlock } from "../reader.ts";

/** A node and its CID. For a new node, the CID whose form the new CID gets. */
export interface ObjectNode extends PbNode {
  readonly cid: CID;
}

/** @throws NodeError for another codec, and for malformed bytes */
export function decodeObject(cid: CID, bytes: Uint8Array): ObjectNode {
  if (cid.code === dagPb) return { ...decodePb(bytes), cid };
  linksOf(cid, bytes);
  throw failure("NOT_DAG_PB");
}

export const readObject = async (cid: CID, read: ReadBlock): Promise<ObjectNode> => decodeObject(cid, await read(cid));

/** Returns the block of a node. Its CID has the version and hash function of `cid`. */
export function blockOf({ cid, ...node }: ObjectNode): Promise<Block> {
  return pbBlock(encodePb(node), cid);
}

/** Returns the block of encoded bytes. Its CID has version 0 without `like`. */
export function pbBlock(bytes: Uint8Array, like?: CID): Promise<Block> {
  if (like === undefined) return makeBlock(bytes, { codec: undefined, hash: sha256, length: -1 });
  const { code, digest } = like.multihash;
  const hash = hashCoded(code);
  if (hash === undefined) throw hashUnavailable(code);
  const codec = like.version === 0 ? undefined : dagPb;
  return makeBlock(bytes, { codec, hash, length: code === identity.code ? -1 : digest.length });
}

/**
 * Returns the size in bytes of a block and all blocks below it, according to its links: the Tsize
 * of a link to it.
 */
export function sizeOf(cid: CID, bytes: Uint8Array): number {
  if (cid.code !== dagPb) return bytes.length;
  return cumulativeSize({ length: bytes.length, links: decodePb(bytes).links });
}
