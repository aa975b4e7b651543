/** The name path as a file system: a directory for each key of the node's own, links for all other names. */
import { statfs } from "node:fs/promises";
import type { PbLink } from "../../dag/pb.ts";
import { NodeError } from "../../errors.ts";
import { Folder, isMissing } from "../../files/folder.ts";
import { linksIn } from "../../files/list.ts";
import { lookup } from "../../files/lookup.ts";
import { cidAt, makeDirectory, move, remove } from "../../files/operations.ts";
import { type NamespacePath, namespacePath } from "../../files/path.ts";
import { writeFile } from "../../files/write_file.ts";
import { type NamedKey, self } from "../../keys/keystore.ts";
import { parsePath } from "../../path/path.ts";
import { buildNode } from "../../unixfs/build.ts";
import { encodeUnixfs } from "../../unixfs/format.ts";
import { fileSize, type TreeNode, treeNode } from "../../unixfs/node.ts";
import { readFile } from "../../unixfs/read.ts";
import { type ContentGround, contentAt, unusable } from "../content.ts";
import {
  type Changes,
  type Entry,
  type FileSystem,
  FuseError,
  type Listing,
  type Pieces,
} from "../fuse/file_system.ts";
import { type Attributes, openFlags, rootId } from "../fuse/wire.ts";
import { pagedListing } from "../listing.ts";
import { NodeTable } from "../node_table.ts";
import { Reads } from "../reads.ts";
import { type Found, keyOf, type NameNode, nodeOf, pathOf, told } from "./name_node.ts";
import { later, OwnTree, type TreeGround } from "./own_tree.ts";
import { Writing } from "./writing.ts";

/** Seconds: names of others may come to stand for something else. */
const remembered = 60;
/** Milliseconds after which a file is taken to be written to its end. */
const idle = 1000;
/** Zeros are stored, too: a file is made no longer than this, in bytes. */
const longest = 2 ** 40;
/** Leads to the directory of the node's own key. */
const local = "local";

async function* nothing(): AsyncGenerator<Uint8Array, void, undefined> {}

export interface NameGround extends ContentGround, TreeGround {
  /** The keys of the node's own. */
  keys(): Promise<readonly NamedKey[]>;
  /** Folder where contents are mounted. */
  readonly contents: string;
  /** Folder on the disk that all is kept on. */
  readonly disk: string;
}

export class NameFiles implements FileSystem, Changes {
  readonly capabilities = 0;
  readonly seconds = remembered;
  readonly directoryFlags = openFlags.keepCache;
  readonly changes: Changes = this;
  readonly #ground: NameGround;
  readonly #nodes: NodeTable<NameNode>;
  readonly #trees = new Map<string, Promise<OwnTree>>();
  readonly #reads: Reads;
  /** Nodes that are being written. */
  readonly #written = new Set<NameNode>();
  readonly #timer = setInterval(() => this.#settleIdle(), idle).unref();

  constructor(ground: NameGround) {
    this.#ground = ground;
    this.#reads = new Reads((options) => ground.reader(options), ground.blocks.buffers);
    this.#nodes = new NodeTable(nodeOf(rootId, undefined, "", { kind: "directory" }));
  }

  async lookup(parent: number, name: string, signal: AbortSignal): Promise<Attributes> {
    const above = this.#nodes.get(parent);
    const known = this.#nodes.find(keyOf(above, name));
    if (known?.tree !== undefined) return this.#tell(above, name, known);
    return this.#tell(above, name, await this.#find(above, name, signal));
  }

  forget(id: number, times: number): void {
    this.#nodes.forget(id, times);
  }

  async attributes(id: number): Promise<Attributes> {
    return told(this.#nodes.get(id));
  }

  async readlink(id: number): Promise<Uint8Array> {
    const { target, file } = this.#nodes.get(id);
    return target === undefined ? (file?.unixfs.data ?? new Uint8Array()) : Buffer.from(target);
  }

  async read(id: number, offset: number, length: number, signal: AbortSignal): Promise<Pieces> {
    const node = this.#nodes.get(id);
    await this.#settle(node);
    if (node.file === undefined) throw new FuseError("EISDIR");
    return this.#reads.read({ id: `${id}.${node.version}`, tree: node.file }, offset, length, signal);
  }

  async list(id: number): Promise<Listing> {
    const node = this.#nodes.get(id);
    return node.tree === undefined ? this.#listKeys(node) : this.#listFolder(node, node.tree);
  }

  async free(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#ground.disk);
    return bavail * bsize;
  }

  async create(parent: number, name: string): Promise<Attributes> {
    return this.#make(parent, name, (tree, path) =>
      this.#write(tree, path, nothing(), { offset: 0, create: true, truncate: false }),
    );
  }

  makeDirectory(parent: number, name: string): Promise<Attributes> {
    return this.#make(parent, name, ({ files }, path) =>
      makeDirectory(files, path, { ...later, parents: false, settings: undefined }),
    );
  }

  makeSymlink(parent: number, name: string, target: string): Promise<Attributes> {
    const data = encodeUnixfs({ type: "Symlink", data: Buffer.from(target) });
    return this.#make(parent, name, ({ files }, { segments }) =>
      files.change(later, async (root) => {
        const folder = await lookup(root, { segments: segments.slice(0, -1) });
        if (!(folder instanceof Folder)) throw new FuseError("ENOTDIR");
        const built = await buildNode({ data, links: [] }, folder.settings, (block) => files.blocks.put([block]));
        await folder.add({ name, ...built });
      }),
    );
  }

  async remove(parent: number, name: string, kind: "file" | "directory"): Promise<void> {
    const { tree, path, above } = this.#place({ parent, name });
    await this.#removable(above, name, kind);
    await saying(remove(tree.files, path, { ...later, recursive: true, force: false }));
    this.#forgetName(above, name);
    tree.changed();
  }

  async rename(from: Entry, to: Entry, { replace }: { readonly replace: boolean }): Promise<void> {
    const [source, dest] = [this.#place(from), this.#place(to)];
    if (source.tree !== dest.tree) throw new FuseError("EXDEV");
    if (source.path.text === dest.path.text) return;
    await Promise.all([...this.#written].map((node) => this.#settle(node)));
    const never = new AbortController().signal;
    const { kind } = await this.#find(source.above, from.name, never);
    const there = await this.#find(dest.above, to.name, never).catch(() => undefined);
    if (there !== undefined) {
      if (!replace) throw new FuseError("EEXIST");
      const wanted = kind === "directory" ? "directory" : "file";
      await this.#removable(dest.above, to.name, wanted);
      // A file is replaced at once; into a directory it would be moved.
      if (kind === "directory") await remove(dest.tree.files, dest.path, { ...later, recursive: true, force: false });
    }
    await saying(move(source.tree.files, source.path, dest.path, later));
    this.#forgetName(dest.above, to.name);
    const node = this.#nodes.find(keyOf(source.above, from.name));
    if (node !== undefined) {
      node.parent = dest.above;
      node.name = to.name;
      this.#nodes.rekey(node.id, keyOf(dest.above, to.name));
    }
    source.tree.changed();
  }

  async resize(id: number, size: number): Promise<void> {
    const { node, tree } = this.#file(id);
    await this.#settle(node);
    const { file } = node;
    if (file === undefined) throw new FuseError("EISDIR");
    if (size > longest) throw new FuseError("EFBIG");
    const was = fileSize(file);
    if (size === was) return;
    const shorter = size < was;
    const content = shorter && size > 0 ? readFile(file, this.#ground.reader({}), { length: size }) : nothing();
    await this.#write(tree, pathOf(node), content, { offset: shorter ? 0 : size, create: false, truncate: shorter });
    await this.#refresh(node, tree);
  }

  async write(id: number, offset: number, bytes: Uint8Array): Promise<void> {
    const { node, tree } = this.#file(id);
    if (offset + bytes.length > longest) throw new FuseError("EFBIG");
    if (node.writing !== undefined && node.writing.end !== offset) await this.#settle(node);
    this.#written.add(node);
    node.writing ??= new Writing(offset, (content) =>
      this.#write(tree, pathOf(node), content, { offset, create: false, truncate: false }),
    );
    await saying(node.writing.put(bytes));
  }

  async settle(id: number, { durable }: { readonly durable: boolean }): Promise<void> {
    const node = this.#nodes.get(id);
    await this.#settle(node);
    const { failure } = node;
    node.failure = undefined;
    if (failure !== undefined) throw failure;
    if (durable) await node.tree?.files.commit();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#reads.close();
    await Promise.allSettled([...this.#written].map((node) => this.#settle(node)));
    const trees = await Promise.allSettled(this.#trees.values());
    await Promise.all(trees.map((opened) => (opened.status === "fulfilled" ? opened.value.close() : undefined)));
  }

  /** Of the trees that are open: what they have changed is kept with what was there. */
  async keep(): Promise<void> {
    const trees = await Promise.allSettled(this.#trees.values());
    await Promise.all(trees.map((opened) => (opened.status === "fulfilled" ? opened.value.files.roots() : undefined)));
  }

  #tell(parent: NameNode, name: string, found: Found): Attributes {
    return told(this.#nodes.tell(keyOf(parent, name), (id) => nodeOf(id, parent, name, found)));
  }

  async #find(above: NameNode, name: string, signal: AbortSignal): Promise<Found> {
    const { tree } = above;
    if (tree === undefined) return this.#name(name, signal);
    const segments = [...pathOf(above).segments, name];
    const found = await saying(tree.files.look({ signal }, (root) => lookup(root, { segments })));
    if (found instanceof Folder) return { kind: "directory", tree };
    return { kind: found.node.unixfs.type === "Symlink" ? "symlink" : "file", file: found.node, tree };
  }

  /** What a name at the root stands for. */
  async #name(name: string, signal: AbortSignal): Promise<Found> {
    const keys = await this.#ground.keys();
    if (name === local) return { kind: "symlink", target: String(keys.find((key) => key.name === self)?.id) };
    const own = keys.find(({ id }) => id.toString() === name || id.toCID().toString() === name);
    if (own !== undefined) return { kind: "directory", tree: await this.#open(own) };
    const path = await this.#ground.names.resolve(name, { signal }).catch((error: unknown) => {
      throw new FuseError(signal.aborted ? "EINTR" : "ENOENT", { cause: error });
    });
    const { namespace, root, segments } = parsePath(path);
    if (namespace !== "ipfs") throw new FuseError("EIO");
    return { kind: "symlink", target: [this.#ground.contents, root, ...segments].join("/") };
  }

  #open(key: NamedKey): Promise<OwnTree> {
    const id = key.id.toString();
    let opening = this.#trees.get(id);
    if (opening === undefined) {
      opening = OwnTree.open(this.#ground, key);
      opening.catch(() => this.#trees.delete(id));
      this.#trees.set(id, opening);
    }
    return opening;
  }

  #listKeys(node: NameNode): Listing {
    const self = this;
    return pagedListing<NamedKey | undefined>({
      async *begin() {
        yield undefined;
        yield* await self.#ground.keys();
      },
      name: (key) =>
        key === undefined ? { name: local, kind: "symlink" } : { name: key.id.toString(), kind: "directory" },
      async look(key) {
        const entry = this.name(key);
        const found = await self.#name(entry.name, new AbortController().signal).catch(() => undefined);
        return { ...entry, node: found && (() => self.#tell(node, entry.name, found)) };
      },
    });
  }

  async #listFolder(node: NameNode, { files }: OwnTree): Promise<Listing> {
    const cid = await saying(cidAt(files, pathOf(node), {}));
    const ground = this.#ground;
    const tell = (name: string, found: Found) => this.#tell(node, name, found);
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

  /** Where something in a tree is to be changed. @throws FuseError where nothing can be */
  #place({ parent, name }: Entry) {
    const above = this.#nodes.get(parent);
    if (above.tree === undefined) throw new FuseError("EPERM");
    const { segments } = pathOf(above);
    return { above, tree: above.tree, path: namespacePath(`/${[...segments, name].join("/")}`) };
  }

  #file(id: number) {
    const node = this.#nodes.get(id);
    if (node.tree === undefined) throw new FuseError("EPERM");
    if (node.gone) throw new FuseError("ESTALE");
    return { node, tree: node.tree };
  }

  async #make(
    parent: number,
    name: string,
    make: (tree: OwnTree, path: NamespacePath) => Promise<void>,
  ): Promise<Attributes> {
    const { above, tree, path } = this.#place({ parent, name });
    await saying(make(tree, path));
    tree.changed();
    return this.#tell(above, name, await this.#find(above, name, new AbortController().signal));
  }

  /** @throws FuseError when it is not of that kind, or not empty */
  async #removable(above: NameNode, name: string, kind: "file" | "directory"): Promise<void> {
    const known = this.#nodes.find(keyOf(above, name));
    if (known !== undefined) await this.#settle(known).catch(() => undefined);
    const found = await this.#find(above, name, new AbortController().signal);
    if ((found.kind === "directory") !== (kind === "directory")) {
      throw new FuseError(kind === "directory" ? "ENOTDIR" : "EISDIR");
    }
    if (kind === "file" || above.tree === undefined) return;
    const { files } = above.tree;
    const cid = await cidAt(files, namespacePath(`/${[...pathOf(above).segments, name].join("/")}`), {});
    const read = this.#ground.reader({});
    for await (const _ of linksIn(cid, await read(cid), read)) throw new FuseError("ENOTEMPTY");
  }

  /** Who has it open still reads it. */
  #forgetName(above: NameNode, name: string): void {
    const node = this.#nodes.find(keyOf(above, name));
    if (node === undefined) return;
    node.gone = true;
    this.#nodes.rekey(node.id, undefined);
  }

  #write(
    { files }: OwnTree,
    path: NamespacePath,
    content: AsyncIterable<Uint8Array>,
    options: { readonly offset: number; readonly create: boolean; readonly truncate: boolean },
  ): Promise<void> {
    const usual = { count: undefined, parents: false, rawLeaves: undefined, settings: undefined };
    return writeFile(files, path, async () => content, { ...usual, ...later, ...options });
  }

  /** What was written to it is in the tree when it resolves. */
  #settle(node: NameNode): Promise<void> {
    const { writing, tree, settling = Promise.resolve() } = node;
    if (writing === undefined || tree === undefined) return settling;
    node.writing = undefined;
    const finish = async () => {
      await settling.catch(() => undefined);
      await saying(writing.finish());
      await this.#refresh(node, tree);
    };
    const done = finish().finally(() => {
      if (node.settling === done) node.settling = undefined;
      if (node.writing === undefined) this.#written.delete(node);
    });
    node.settling = done;
    return done;
  }

  async #refresh(node: NameNode, tree: OwnTree): Promise<void> {
    const found = await tree.files.look({}, (root) => lookup(root, pathOf(node)));
    if (!(found instanceof Folder)) node.file = found.node;
    node.version += 1;
    tree.changed();
  }

  #settleIdle(): void {
    const before = performance.now() - idle;
    for (const node of this.#written) {
      if (node.writing === undefined || node.writing.used > before) continue;
      this.#settle(node).catch((error: Error) => {
        node.failure = error;
        this.#ground.log.write("fuse/ipns", "error", `${pathOf(node).text} was not written: ${error.message}`);
      });
    }
  }
}

/** What is missing, or would not fit, is said so. */
async function saying<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isMissing(error)) throw new FuseError("ENOENT", { cause: error });
    if (error instanceof NodeError && error.code === "STORE_FULL") throw new FuseError("ENOSPC", { cause: error });
    throw error;
  }
}
