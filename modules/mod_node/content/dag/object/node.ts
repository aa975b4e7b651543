/** dag-pb nodes at hand: read by CID, and written again in the form of the CID that they had. */
import type { CID } from "multiformats/cid";
import { dagPb } from "../../../formats/cid/codecs.ts";
import { hashCoded, hashUnavailable, identity, sha256 } from "../../../formats/cid/hashes.ts";
import { cumulativeSize, decodePb, encodePb, type PbNode } from "../../../formats/dag_pb/dag_pb.ts";
import { linksOf } from "../../../formats/ipld/links.ts";
import { makeBlock } from "../../../storage/blockstore/make_block.ts";
import type { Block } from "../../../storage/blockstore/store.ts";
import { NodeError } from "../../../util/errors.ts";
import type { ReadBlock } from "../reader.ts";

/** A node with the CID that it has, or that says how the next one is made. */
export interface ObjectNode extends PbNode {
  readonly cid: CID;
}

/** @throws NodeError for a node of another codec, and for bytes that are none of theirs */
export function decodeObject(cid: CID, bytes: Uint8Array): ObjectNode {
  if (cid.code === dagPb) return { ...decodePb(bytes), cid };
  linksOf(cid, bytes);
  throw new NodeError("expected protobuf dag node");
}

export const readObject = async (cid: CID, read: ReadBlock): Promise<ObjectNode> => decodeObject(cid, await read(cid));

/** The block of a node, its CID of the version and hash function of the one that it has. */
export function blockOf({ cid, ...node }: ObjectNode): Promise<Block> {
  return pbBlock(encodePb(node), cid);
}

/** The same for bytes; of version 0 where there is no CID yet. */
export function pbBlock(bytes: Uint8Array, like?: CID): Promise<Block> {
  if (like === undefined) return makeBlock(bytes, { codec: undefined, hash: sha256, length: -1 });
  const { code, digest } = like.multihash;
  const hash = hashCoded(code);
  if (hash === undefined) throw hashUnavailable(code);
  const codec = like.version === 0 ? undefined : dagPb;
  return makeBlock(bytes, { codec, hash, length: code === identity.code ? -1 : digest.length });
}

/** Bytes of a block and all below it, by what its links say: the size of a link to it. */
export function sizeOf(cid: CID, bytes: Uint8Array): number {
  if (cid.code !== dagPb) return bytes.length;
  return cumulativeSize({ length: bytes.length, links: decodePb(bytes).links });
}
