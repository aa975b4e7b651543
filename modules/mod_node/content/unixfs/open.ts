/**
 * Opens blocks as files, directories and symlinks, with the reference's error texts for other
 * blocks.
 */
import type { CID } from "multiformats/cid";
import { dagPb } from "../../formats/cid/codecs.ts";
import { decodePb } from "../../formats/dag_pb/dag_pb.ts";
import { hasValues } from "../../formats/ipld/data_model.ts";
import { decodeUnixfs } from "../../formats/unixfs/format.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { type ReadBlock, readSoon } from "../dag/reader.ts";
import { type UnixfsNode, unixfsNode } from "./node.ts";

/** @throws NodeError when the block is not a UnixFS node */
export function openNode(cid: CID, bytes: Uint8Array): UnixfsNode {
  const node = unixfsNode(cid, bytes);
  if (node !== undefined) return node;
  if (hasValues(cid.code)) throw failure("NOT_UNIXFS", { reason: "unknown node type" });
  if (cid.code !== dagPb) throw failure("CODEC_UNREADABLE", { codec: cid.code });
  // The block is malformed: decoding it again throws the reason.
  decodeUnixfs(decodePb(bytes).data ?? new Uint8Array());
  throw failure("UNIXFS_INVALID", { reason: "unrecognized node type" });
}

/**
 * Opens a file, directory or symlink. A Metadata node leads to the file that it describes. @throws
 * NodeError
 */
export async function openFile(cid: CID, read: ReadBlock): Promise<UnixfsNode> {
  const coming = readSoon(read, cid);
  let node = openNode(cid, coming instanceof Promise ? await coming : coming);
  while (node.unixfs.type === "Metadata") {
    const [described] = node.links;
    if (described === undefined) throw failure("UNIXFS_INVALID", { reason: "incorrectly formatted metadata object" });
    node = openNode(described.cid, await read(described.cid));
  }
  return node;
}

/** Codes of failures that mean that a block is not available anywhere. */
const missing: readonly unknown[] = ["NODE_NOT_FOUND", "REFERENCE_BROKEN"];

/** For readers of many blocks: changes the text for a missing block, as in the reference. */
export const bulkReader =
  (read: ReadBlock): ReadBlock =>
  async (cid) => {
    try {
      return await read(cid);
    } catch (error) {
      if (!(error instanceof NodeError && missing.includes(error.code))) throw error;
      throw new NodeError("NODE_NOT_FOUND", "failed to fetch all nodes", { details: error.details, cause: error });
    }
  };
