/**
 * /ipns as a file system: a directory for each of the node's own keys, and symlinks for all other
 * names.
 */

import { statfs } from "node:fs/promises";
import type { CID } from "multiformats/cid";
import { linksIn } from "../../content/mfs/list.ts";
import { cidAt } from "../../content/mfs/operations.ts";
import { type UnixfsNode, unixfsNode } from "../../content/unixfs/node.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { NamedKey } from "../../storage/keystore/keystore.ts";
import { textBytes } from "../../util/byte_text.ts";
import { type Changes, type FileSystem, FuseError, type OpenListing, type ReadPieces } from "../fuse/file_system.ts";
import { type Attributes, capabilities, openFlags } from "../fuse/wire.ts";
import { contentAt, unusable } from "../ipfs_files.ts";
import { pagedListing } from "../paged_listing.ts";
import { FileReadahead } from "../readahead.ts";
import { FileWrites } from "./file_writes.ts";
import { IpnsChanges } from "./ipns_changes.ts";
import { attributesOf, keyOf, type NameNode, type NameTarget, pathOf } from "./name_node.ts";
import { asFuseError, localLink, type NameDeps, NameTree } from "./name_tree.ts";
import type { OwnTree } from "./own_tree.ts";

/** Seconds for which the kernel may cache entries: names of other nodes may change. */
const REMEMBERED_SECONDS = 60;

export class IpnsFiles implements FileSystem {
  readonly capabilities = capabilities.writebackCache;
  /**
   * Concurrent writes stay in memory, because writes come faster than they can be stored. So the
   * kernel may send only a few.
   */
  readonly limits = { bytes: 2 ** 18, background: 12 };
  readonly seconds = REMEMBERED_SECONDS;
  readonly directoryFlags = openFlags.keepCache;
  readonly changes: Changes;
  readonly buffers: BufferPool;
  readonly #deps: NameDeps;
  readonly #tree: NameTree;
  readonly #writes: FileWrites;
  readonly #reads: FileReadahead;

  constructor(deps: NameDeps) {
    this.#deps = deps;
    this.buffers = deps.blocks.buffers;
    this.#reads = new FileReadahead((options) => deps.reader(options), this.buffers);
    this.#tree = new NameTree(deps);
    this.#writes = new FileWrites(deps);
    this.changes = new IpnsChanges(deps, this.#tree, this.#writes);
  }

  async lookup(parent: number, name: string, signal: AbortSignal): Promise<Attributes> {
    const above = this.#tree.nodes.get(parent);
    const known = this.#tree.nodes.find(keyOf(above, name));
    const found = known?.tree === undefined ? await this.#tree.find(above, name, signal) : known;
    return this.#tree.register(above, name, found);
  }

  forget(id: number, times: number): void {
    this.#tree.nodes.forget(id, times);
  }

  async attributes(id: number): Promise<Attributes> {
    return attributesOf(this.#tree.nodes.get(id));
  }

  async readlink(id: number): Promise<Uint8Array> {
    const { target, file } = this.#tree.nodes.get(id);
    return target === undefined ? (file?.unixfs.data ?? new Uint8Array()) : textBytes(target);
  }

  async read(id: number, offset: number, length: number, signal: AbortSignal): Promise<ReadPieces> {
    const node = this.#tree.nodes.get(id);
    await this.#writes.settle(node);
    if (node.file === undefined) throw new FuseError("EISDIR");
    return this.#reads.read({ id: `${id}.${node.version}`, tree: node.file }, offset, length, signal);
  }

  async list(id: number): Promise<OpenListing> {
    const node = this.#tree.nodes.get(id);
    return node.tree === undefined ? this.#listKeys(node) : this.#listFolder(node, node.tree);
  }

  async free(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#deps.disk);
    return bavail * bsize;
  }

  async close(): Promise<void> {
    this.#reads.close();
    await this.#writes.close();
    await this.#tree.close();
  }

  /** Returns the roots of open trees, which garbage collection must spare. */
  roots(): Promise<CID[]> {
    return this.#tree.roots();
  }

  #listKeys(node: NameNode): OpenListing {
    const tree = this.#tree;
    const deps = this.#deps;
    return pagedListing<NamedKey | undefined>({
      async *begin() {
        yield undefined;
        yield* await deps.keys();
      },
      name: (key) =>
        key === undefined ? { name: localLink, kind: "symlink" } : { name: key.id.toString(), kind: "directory" },
      async look(key, signal) {
        const entry = this.name(key);
        const found = await tree.find(node, entry.name, signal).catch(() => undefined);
        return { ...entry, node: found && (() => tree.register(node, entry.name, found)) };
      },
    });
  }

  async #listFolder(node: NameNode, { files }: OwnTree): Promise<OpenListing> {
    const cid = await asFuseError(cidAt(files, pathOf(node), {}));
    const deps = this.#deps;
    const register = (name: string, found: NameTarget) => this.#tree.register(node, name, found);
    return pagedListing<PbLink>({
      async *begin(signal) {
        const read = deps.reader({ signal });
        for await (const link of linksIn(cid, await read(cid), read)) if (!unusable.test(link.name)) yield link;
      },
      name: ({ name }) => ({ name, kind: undefined }),
      async look({ name, cid }, signal) {
        const read = deps.reader({ signal });
        const content = await contentAt(cid, deps, read).catch(() => undefined);
        if (content === undefined) return { name, kind: undefined };
        const { kind } = content;
        const { unixfs: facts } = content.tree ?? {};
        if (kind === "directory") return { name, kind, node: () => register(name, { kind, facts, tree: node.tree }) };
        const file = content.tree ?? (unixfsNode(cid, await read(cid)) as UnixfsNode);
        return { name, kind, node: () => register(name, { kind, file, tree: node.tree }) };
      },
    });
  }
}
