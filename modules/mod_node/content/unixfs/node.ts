/** What a block of a file tree is: one reading of codec and UnixFS message for all who walk such trees. */
import type { CID } from "multiformats/cid";
import { dagPb, raw } from "../../formats/cid/codecs.ts";
import { decodePb, type PbLink } from "../../formats/dag_pb/dag_pb.ts";
import { decodeUnixfs, type Unixfs } from "../../formats/unixfs/format.ts";
import { NodeError } from "../../util/errors.ts";

export interface UnixfsNode {
  readonly cid: CID;
  /** Bytes of the block. */
  readonly length: number;
  readonly links: readonly PbLink[];
  /** A raw block is a File with data. */
  readonly unixfs: Unixfs;
}

/** Nodes of so many links are decoded once while their bytes are held by somebody. */
const MIN_CACHED_LINKS = 8;
const decoded = new WeakMap<Uint8Array, UnixfsNode>();

/** Undefined when the codec or the data is none of a file tree. */
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

/** Bytes of the file that a File or Raw node is the root of. */
export const fileSize = ({ unixfs }: UnixfsNode): number =>
  unixfs.type === "Symlink" ? (unixfs.data?.length ?? 0) : (unixfs.filesize ?? unixfs.data?.length ?? 0);
