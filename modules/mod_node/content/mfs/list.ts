/** Describes files and directories, for `files/stat`, `files/ls` and the mount. */
import type { CID } from "multiformats/cid";
import { dagPb, raw } from "../../formats/cid/codecs.ts";
import { cumulativeSize, decodePb, type PbLink, pbData } from "../../formats/dag_pb/dag_pb.ts";
import { scanPages } from "../../formats/dag_pb/scan_links.ts";
import { decodeUnixfs, type ModeAndTime, type Unixfs } from "../../formats/unixfs/format.ts";
import { oneByOne } from "../../util/async/one_by_one.ts";
import { failure } from "../../util/errors.ts";
import type { ReadBlock } from "../dag/reader.ts";
import { type Describing, described } from "../unixfs/children.ts";
import { entryPages } from "../unixfs/list.ts";
import { fileSize, type UnixfsNode, unixfsNode } from "../unixfs/node.ts";
import { entryIn, kindIn, type kindOf } from "./folder.ts";
import { PlainDirectory } from "./plain_directory.ts";

export type Kind = ReturnType<typeof kindOf>;

export interface NamespaceStat extends ModeAndTime {
  /** Whether it is a symlink. Its `kind` is `file`. */
  readonly isSymlink?: boolean;
  readonly cid: CID;
  readonly kind: Kind;
  /** Size of a file in bytes; 0 for a directory. */
  readonly size: number;
  /** Size in bytes of the block and everything below it. */
  readonly cumulativeSize: number;
  /** Number of links of the block. */
  readonly children: number;
}

export interface NamespaceEntry {
  readonly name: string;
  readonly cid: CID;
  readonly kind: Kind;
  /** Size of a file in bytes; 0 for a directory. */
  readonly size: number;
}

const PAGE_LINKS = 256;
const nothing = new Uint8Array();

/**
 * Describes a block. @throws NodeError for a block that is neither a file nor a directory, nor a
 * symlink with `symlinks`
 */
export function statOf(cid: CID, bytes: Uint8Array, symlinks = false): NamespaceStat {
  if (cid.code === raw) {
    return { cid, kind: "file", size: bytes.length, cumulativeSize: bytes.length, children: 0 };
  }
  if (cid.code !== dagPb) throw failure("NOT_UNIXFS", { reason: "not unixfs node (proto or raw)" });
  const { data = nothing, links } = decodePb(bytes);
  const unixfs = decodeUnixfs(data);
  if (unixfs.type === "Symlink" && !symlinks)
    throw failure("UNIXFS_TYPE_UNSUPPORTED", { reason: "unrecognized node type: Symlink" });
  const { type, mode, mtime } = unixfs;
  const kind = type === "Directory" || type === "HAMTShard" ? "directory" : "file";
  const total = cumulativeSize({ length: bytes.length, links });
  const isSymlink = type === "Symlink";
  return { cid, kind, isSymlink, size: sizeOf(unixfs), cumulativeSize: total, children: links.length, mode, mtime };
}

/** Returns the size of a file or of the target of a symlink; 0 for other nodes. */
function sizeOf(unixfs: Unixfs): number {
  if (unixfs.type !== "File" && unixfs.type !== "Raw" && unixfs.type !== "Symlink") return 0;
  return fileSize({ unixfs } as UnixfsNode);
}

/** Describes a block as an entry. @throws NodeError for a block that cannot be an entry of MFS */
export function describe(name: string, cid: CID, bytes: Uint8Array): NamespaceEntry {
  if (cid.code === raw) return { name, cid, kind: "file", size: bytes.length };
  const unixfs = entryIn(cid, bytes);
  return { name, cid, kind: kindIn(unixfs), size: sizeOf(unixfs) };
}

/**
 * Yields the links of a directory in order, in pages. Only the blocks of the directory itself stay
 * in memory.
 */
export async function* linkPages(
  cid: CID,
  bytes: Uint8Array,
  read: ReadBlock,
): AsyncGenerator<readonly PbLink[], void, undefined> {
  const scanned = scanPages(bytes, PAGE_LINKS);
  const { type } = decodeUnixfs((scanned === undefined ? pbData(bytes) : scanned.data) ?? nothing);
  if (type === "HAMTShard") yield* entryPages(unixfsNode(cid, bytes) as UnixfsNode, read);
  else yield* scanned?.pages ?? inPages(new PlainDirectory(bytes).links());
}

function* inPages(links: Iterable<PbLink>): Generator<readonly PbLink[]> {
  let page: PbLink[] = [];
  for (const link of links) {
    if (page.push(link) < PAGE_LINKS) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** Like `linkPages`, link by link. */
export const linksIn = (cid: CID, bytes: Uint8Array, read: ReadBlock): AsyncIterable<PbLink> =>
  oneByOne(linkPages(cid, bytes, read));

const describing: Describing<NamespaceEntry> = {
  unread: ({ name, cid, size }) => (cid.code === raw ? { name, cid, kind: "file", size } : undefined),
  known: ({ name, cid }, { type, size }) =>
    type === "Directory" || type === "HAMTShard"
      ? { name, cid, kind: "directory", size: 0 }
      : { name, cid, kind: "file", size },
  read: ({ name, cid }, bytes) => describe(name, cid, bytes),
};

/**
 * Yields the entries of a directory in pages. @throws NodeError at an entry that is missing or that
 * cannot be an entry of MFS
 */
export const pagesOfEntries = (
  cid: CID,
  bytes: Uint8Array,
  read: ReadBlock,
): AsyncIterable<readonly NamespaceEntry[]> => described(linkPages(cid, bytes, read), read, describing);

/** Like `pagesOfEntries`, entry by entry. */
export const entriesIn = (cid: CID, bytes: Uint8Array, read: ReadBlock): AsyncIterable<NamespaceEntry> =>
  oneByOne(pagesOfEntries(cid, bytes, read));
