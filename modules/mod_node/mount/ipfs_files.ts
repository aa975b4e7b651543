/** /ipfs as a file system: every CID is an entry of its root. */
import type { CID } from "multiformats/cid";
import type { ReadBlock } from "../content/dag/reader.ts";
import { entries, lookup } from "../content/unixfs/list.ts";
import { fileSize, isDirectory, type UnixfsNode } from "../content/unixfs/node.ts";
import { bulkReader, openFile } from "../content/unixfs/open.ts";
import { raw } from "../formats/cid/codecs.ts";
import { parseCid } from "../formats/cid/text.ts";
import type { PbLink } from "../formats/dag_pb/dag_pb.ts";
import type { ModeAndTime } from "../formats/unixfs/format.ts";
import type { BlockService, ReadOptions } from "../storage/blockstore/block_service.ts";
import type { BufferPool } from "../storage/blockstore/buffer_pool.ts";
import { type FailureCode, NodeError } from "../util/errors.ts";
import { LRU } from "../util/lru.ts";
import { type FileSystem, FuseError, type OpenListing, type ReadPieces } from "./fuse/file_system.ts";
import { type Attributes, capabilities, type Kind, openFlags, rootId } from "./fuse/wire.ts";
import { NodeTable } from "./node_table.ts";
import { pagedListing } from "./paged_listing.ts";
import { FileReadahead } from "./readahead.ts";

/** The content of a CID never changes, so the kernel may cache it for a year. */
const ONE_YEAR_SECONDS = 365 * 24 * 3600;
const modes: Readonly<Record<Kind, number>> = { directory: 0o555, file: 0o444, symlink: 0o777 };
/** The root can be traversed, but not listed. */
const rootMode = 0o111;
/** Maximum number of directories and files whose root nodes are cached. */
const MAX_TREES = 128;
/** Names of links that cannot be directory entries. */
export const unusable = /^$|^\.\.?$|[/\0]/;

/** Failures of blocks that are no file, directory or symlink. */
const noFile: ReadonlySet<FailureCode> = new Set<FailureCode>([
  "DAG_PB_INVALID",
  "NOT_UNIXFS",
  "PROTOBUF_INVALID",
  "UNIXFS_INVALID",
]);

/** A block as a directory entry. `tree` is its decoded node, if it was decoded. */
export interface ContentEntry {
  readonly cid: CID;
  readonly kind: Kind;
  /** Size in bytes. */
  readonly size: number;
  readonly tree?: UnixfsNode | undefined;
}

interface ContentNode extends Attributes {
  /** Undefined for the root. */
  readonly cid: CID | undefined;
}

export interface ContentDeps {
  readonly blocks: BlockService;
  reader(options: ReadOptions): ReadBlock;
}

/**
 * Returns mode and time of a node. Nodes without a mode get that of the mount. Symlinks always have
 * the same mode.
 */
export function modeAndTime(
  kind: Kind,
  { mode = 0, mtime }: ModeAndTime = {},
  otherwise: Readonly<Record<Kind, number>>,
): Pick<Attributes, "mode" | "mtime"> {
  const given = kind === "symlink" ? 0 : mode & 0o777;
  return { mode: given === 0 ? otherwise[kind] : given, mtime };
}

/** @throws NodeError for a missing block, FuseError if it is not a file, directory or symlink */
export async function contentAt(cid: CID, { blocks }: ContentDeps, read: ReadBlock): Promise<ContentEntry> {
  if (cid.code === raw) {
    const size = (await blocks.size(cid)) ?? (await read(cid)).length;
    return { cid, kind: "file", size };
  }
  const tree = await openFile(cid, read).catch((error: unknown) => {
    if (error instanceof NodeError && noFile.has(error.code)) throw new FuseError("EOPNOTSUPP", { cause: error });
    throw error;
  });
  if (isDirectory(tree)) return { cid, kind: "directory", size: 0, tree };
  return { cid, kind: tree.unixfs.type === "Symlink" ? "symlink" : "file", size: fileSize(tree), tree };
}

export class IpfsFiles implements FileSystem {
  readonly capabilities = capabilities.cacheSymlinks;
  readonly limits = { bytes: 2 ** 20, background: 64 };
  readonly seconds = ONE_YEAR_SECONDS;
  readonly directoryFlags = openFlags.keepCache | openFlags.cacheDirectory;
  readonly buffers: BufferPool;
  readonly #deps: ContentDeps;
  readonly #nodes = new NodeTable<ContentNode>({
    id: rootId,
    kind: "directory",
    mode: rootMode,
    size: 0,
    cid: undefined,
  });
  readonly #trees = new LRU<number, ContentTree>(MAX_TREES);
  readonly #reads: FileReadahead;

  constructor(deps: ContentDeps) {
    this.#deps = deps;
    this.buffers = deps.blocks.buffers;
    this.#reads = new FileReadahead((options) => this.#reader(options), this.buffers);
  }

  async lookup(parent: number, name: string, signal: AbortSignal): Promise<Attributes> {
    const read = this.#reader({ signal });
    const node = this.#nodes.get(parent);
    if (node.cid === undefined) return this.#register(parent, name, await this.#content(cidNamed(name), read));
    const link = await (await this.#tree(node, read)).find(name, read);
    if (link === undefined) throw new FuseError("ENOENT");
    return this.#register(parent, name, await contentAt(link.cid, this.#deps, read));
  }

  forget(id: number, times: number): void {
    this.#nodes.forget(id, times);
  }

  async attributes(id: number): Promise<Attributes> {
    return this.#nodes.get(id);
  }

  async readlink(id: number, signal: AbortSignal): Promise<Uint8Array> {
    const { tree } = await this.#tree(this.#nodes.get(id), this.#reader({ signal }));
    return tree.unixfs.data ?? new Uint8Array();
  }

  async read(id: number, offset: number, length: number, signal: AbortSignal): Promise<ReadPieces> {
    const { tree } = await this.#tree(this.#nodes.get(id), this.#reader({ signal }));
    return this.#reads.read({ id, tree }, offset, length, signal);
  }

  async list(id: number): Promise<OpenListing> {
    const node = this.#nodes.get(id);
    if (node.cid === undefined) throw new FuseError("EPERM");
    const self = this;
    return pagedListing<PbLink>({
      async *begin(signal) {
        const read = self.#reader({ signal });
        const { tree } = await self.#tree(node, read);
        for await (const link of entries(tree, read)) if (!unusable.test(link.name)) yield link;
      },
      name: ({ name, cid }) => ({ name, kind: cid.code === raw ? "file" : undefined }),
      async look({ name, cid }, signal) {
        // The name of an entry is listed even if its block is not available.
        const content = await contentAt(cid, self.#deps, self.#reader({ signal })).catch(() => undefined);
        if (content === undefined) return { name, kind: undefined };
        return { name, kind: content.kind, node: () => self.#register(node.id, name, content) };
      },
    });
  }

  async free(): Promise<number> {
    return 0;
  }

  async close(): Promise<void> {
    this.#reads.close();
  }

  #reader(options: ReadOptions): ReadBlock {
    return bulkReader(this.#deps.reader(options));
  }

  /** A CID whose block is not available does not exist. */
  #content(cid: CID, read: ReadBlock): Promise<ContentEntry> {
    return contentAt(cid, this.#deps, read).catch((error: unknown) => {
      if (error instanceof NodeError && error.code === "NODE_NOT_FOUND")
        throw new FuseError("ENOENT", { cause: error });
      throw error;
    });
  }

  /**
   * Files with the same content are one node everywhere. Every path of a directory has a node of
   * its own.
   */
  #register(parent: number, name: string, { cid, kind, size, tree }: ContentEntry): Attributes {
    const key = kind === "file" ? cid.toString() : `${parent}/${name}`;
    const node = this.#nodes.register(key, (id) => ({
      id,
      kind,
      size,
      cid,
      ...modeAndTime(kind, tree?.unixfs, modes),
    }));
    if (tree !== undefined) this.#cacheTree(node.id, new ContentTree(tree));
    return node;
  }

  #cacheTree(id: number, tree: ContentTree): ContentTree {
    this.#trees.set(id, tree);
    return tree;
  }

  async #tree({ id, cid }: ContentNode, read: ReadBlock): Promise<ContentTree> {
    if (cid === undefined) throw new FuseError("EISDIR");
    return this.#trees.get(id) ?? this.#cacheTree(id, new ContentTree(await openFile(cid, read)));
  }
}

function cidNamed(name: string): CID {
  try {
    return parseCid(name);
  } catch (error) {
    throw new FuseError("ENOENT", { cause: error });
  }
}

/** A directory or file. Names in a plain directory are indexed on the first lookup. */
class ContentTree {
  readonly tree: UnixfsNode;
  #byName: Map<string, PbLink> | undefined;

  constructor(tree: UnixfsNode) {
    this.tree = tree;
  }

  async find(name: string, read: ReadBlock): Promise<PbLink | undefined> {
    const { tree } = this;
    if (tree.unixfs.type === "HAMTShard") return lookup(tree, name, read);
    // The first link of a name takes precedence.
    this.#byName ??= new Map(tree.links.toReversed().map((link) => [link.name, link]));
    return this.#byName.get(name);
  }
}
