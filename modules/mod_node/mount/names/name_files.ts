/** The name path as a file system: a directory for each key of the node's own, links for all other names. */
import { statfs } from "node:fs/promises";
import type { CID } from "multiformats/cid";
import { linksIn } from "../../content/mfs/list.ts";
import { cidAt } from "../../content/mfs/operations.ts";
import { type TreeNode, treeNode } from "../../content/unixfs/node.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { Buffers } from "../../storage/blockstore/buffers.ts";
import type { NamedKey } from "../../storage/keystore/keystore.ts";
import { contentAt, unusable } from "../content.ts";
import { type Changes, type FileSystem, FuseError, type Listing, type Pieces } from "../fuse/file_system.ts";
import { type Attributes, capabilities, openFlags } from "../fuse/wire.ts";
import { pagedListing } from "../listing.ts";
import { Reads } from "../reads.ts";
import { NameChanges } from "./changes.ts";
import { type Found, keyOf, type NameNode, pathOf, told } from "./name_node.ts";
import type { OwnTree } from "./own_tree.ts";
import { local, type NameGround, Places, saying } from "./places.ts";
import { WrittenFiles } from "./written.ts";

/** Seconds: names of others may come to stand for something else. */
const remembered = 60;

export class NameFiles implements FileSystem {
  readonly capabilities = capabilities.writebackCache;
  /** All that comes at once is held in memory: what is written is more than can be stored as fast. */
  readonly limits = { bytes: 2 ** 18, background: 12 };
  readonly seconds = remembered;
  readonly directoryFlags = openFlags.keepCache;
  readonly changes: Changes;
  readonly buffers: Buffers;
  readonly #ground: NameGround;
  readonly #places: Places;
  readonly #written: WrittenFiles;
  readonly #reads: Reads;

  constructor(ground: NameGround) {
    this.#ground = ground;
    this.buffers = ground.blocks.buffers;
    this.#reads = new Reads((options) => ground.reader(options), this.buffers);
    this.#places = new Places(ground);
    this.#written = new WrittenFiles(ground);
    this.changes = new NameChanges(ground, this.#places, this.#written);
  }

  async lookup(parent: number, name: string, signal: AbortSignal): Promise<Attributes> {
    const above = this.#places.nodes.get(parent);
    const known = this.#places.nodes.find(keyOf(above, name));
    const found = known?.tree === undefined ? await this.#places.find(above, name, signal) : known;
    return this.#places.tell(above, name, found);
  }

  forget(id: number, times: number): void {
    this.#places.nodes.forget(id, times);
  }

  async attributes(id: number): Promise<Attributes> {
    return told(this.#places.nodes.get(id));
  }

  async readlink(id: number): Promise<Uint8Array> {
    const { target, file } = this.#places.nodes.get(id);
    return target === undefined ? (file?.unixfs.data ?? new Uint8Array()) : Buffer.from(target);
  }

  async read(id: number, offset: number, length: number, signal: AbortSignal): Promise<Pieces> {
    const node = this.#places.nodes.get(id);
    await this.#written.settle(node);
    if (node.file === undefined) throw new FuseError("EISDIR");
    return this.#reads.read({ id: `${id}.${node.version}`, tree: node.file }, offset, length, signal);
  }

  async list(id: number): Promise<Listing> {
    const node = this.#places.nodes.get(id);
    return node.tree === undefined ? this.#listKeys(node) : this.#listFolder(node, node.tree);
  }

  async free(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#ground.disk);
    return bavail * bsize;
  }

  async close(): Promise<void> {
    this.#reads.close();
    await this.#written.close();
    await this.#places.close();
  }

  /** Of the trees that are open: what garbage collection has to keep. */
  roots(): Promise<CID[]> {
    return this.#places.roots();
  }

  #listKeys(node: NameNode): Listing {
    const places = this.#places;
    const ground = this.#ground;
    return pagedListing<NamedKey | undefined>({
      async *begin() {
        yield undefined;
        yield* await ground.keys();
      },
      name: (key) =>
        key === undefined ? { name: local, kind: "symlink" } : { name: key.id.toString(), kind: "directory" },
      async look(key, signal) {
        const entry = this.name(key);
        const found = await places.find(node, entry.name, signal).catch(() => undefined);
        return { ...entry, node: found && (() => places.tell(node, entry.name, found)) };
      },
    });
  }

  async #listFolder(node: NameNode, { files }: OwnTree): Promise<Listing> {
    const cid = await saying(cidAt(files, pathOf(node), {}));
    const ground = this.#ground;
    const tell = (name: string, found: Found) => this.#places.tell(node, name, found);
    return pagedListing<PbLink>({
      async *begin(signal) {
        const read = ground.reader({ signal });
        for await (const link of linksIn(cid, await read(cid), read)) if (!unusable.test(link.name)) yield link;
      },
      name: ({ name }) => ({ name, kind: undefined }),
      async look({ name, cid }, signal) {
        const read = ground.reader({ signal });
        const content = await contentAt(cid, ground, read).catch(() => undefined);
        if (content === undefined) return { name, kind: undefined };
        const { kind } = content;
        if (kind === "directory") return { name, kind, node: () => tell(name, { kind, tree: node.tree }) };
        const file = content.tree ?? (treeNode(cid, await read(cid)) as TreeNode);
        return { name, kind, node: () => tell(name, { kind, file, tree: node.tree }) };
      },
    });
  }
}
