/** Decodes a block of a UnixFS DAG: its codec and its UnixFS message in one step. */
import type { CID } from "multiformats/cid";
import { dagPb, raw } from "../../formats/cid/codecs.ts";
import { decodePb, type PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { decodeUnixfs, type Unixfs } from "../../formats/unixfs/format.ts";
import { failure, NodeError } from "../../util/errors.ts";

export interface UnixfsNode {
  readonly cid: CID;
  /** Size of the block in bytes. */
  readonly length: number;
  readonly links: readonly PbLink[];
  /** A raw block counts as a File with data. */
  readonly unixfs: Unixfs;
}

/** Nodes with at least this many links are decoded once while their bytes are in memory. */
const MIN_CACHED_LINKS = 2;
const decoded = new WeakMap<Uint8Array, UnixfsNode>();

/** Returns undefined if codec or data are not those of a UnixFS DAG. */
export function unixfsNode(cid: CID, bytes: Uint8Array): UnixfsNode | undefined {
  if (cid.code === raw) {
    const unixfs = { type: "File", data: bytes, filesize: bytes.length, blocksizes: [] } as const;
    return { cid, length: bytes.length, links: [], unixfs };
  }
  if (cid.code !== dagPb) return undefined;
  const known = decoded.get(bytes);
  if (known?.cid.equals(cid)) return known;
  const { data, links } = decodePb(bytes);
  if (data === undefined) return undefined;
  try {
    const node = { cid, length: bytes.length, links, unixfs: decodeUnixfs(data) };
    if (links.length >= MIN_CACHED_LINKS) decoded.set(bytes, node);
    return node;
  } catch (error) {
    if (error instanceof NodeError) return undefined;
    throw error;
  }
}

export const isDirectory = ({ unixfs }: UnixfsNode): boolean =>
  unixfs.type === "Directory" || unixfs.type === "HAMTShard";

/** Size in bytes of a file, or of the target of a symlink. */
export const fileSize = ({ unixfs }: UnixfsNode): number =>
  unixfs.type === "Symlink" ? (unixfs.data?.length ?? 0) : (unixfs.filesize ?? unixfs.data?.length ?? 0);

/** Whether the node has the size of the part of the file below each link. */
export const isSized = ({ links, unixfs }: UnixfsNode): boolean => links.length === (unixfs.blocksizes?.length ?? 0);

/** @throws NodeError for a block that is not part of a file */
export function partOfFile(cid: CID, bytes: Uint8Array): UnixfsNode {
  const node = unixfsNode(cid, bytes);
  if (node !== undefined && (node.unixfs.type === "File" || node.unixfs.type === "Raw")) return node;
  throw failure("UNIXFS_PART_INVALID", { cid: String(cid) });
}
