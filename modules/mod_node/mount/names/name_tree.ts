/**
 * The tree of the /ipns mount: the root with its names, and the MFS trees below the node's own
 * names.
 */
import type { CID } from "multiformats/cid";
import { Folder, isMissing } from "../../content/mfs/folder.ts";
import { lookup } from "../../content/mfs/lookup.ts";
import { type NamespacePath, namespacePath } from "../../content/mfs/path.ts";
import { parsePath } from "../../content/resolver/path.ts";
import { type NamedKey, self } from "../../storage/keystore/keystore.ts";
import { NodeError } from "../../util/errors.ts";
import { type EntryName, FuseError } from "../fuse/file_system.ts";
import { type Attributes, rootId } from "../fuse/wire.ts";
import type { ContentDeps } from "../ipfs_files.ts";
import { NodeTable } from "../node_table.ts";
import { attributesOf, keyOf, type NameNode, type NameTarget, nodeOf, pathOf } from "./name_node.ts";
import { OwnTree, type TreeDeps } from "./own_tree.ts";

/** Name of a symlink to the directory of the node's own key. */
export const localLink = "local";

const never = new AbortController().signal;

export interface NameDeps extends ContentDeps, TreeDeps {
  /** Returns the node's own keys. */
  keys(): Promise<readonly NamedKey[]>;
  /** Folder where /ipfs is mounted. */
  readonly contents: string;
  /** A folder on the disk of the repo. */
  readonly disk: string;
}

/** A path in a tree, for a change. */
export interface TreeLocation {
  readonly above: NameNode;
  readonly tree: OwnTree;
  readonly path: NamespacePath;
}

export class NameTree {
  readonly nodes: NodeTable<NameNode>;
  readonly #deps: NameDeps;
  readonly #trees = new Map<string, Promise<OwnTree>>();
  /** The open trees. */
  readonly #open = new Set<OwnTree>();
  readonly #leaving = new AbortController();

  constructor(deps: NameDeps) {
    this.#deps = deps;
    this.nodes = new NodeTable(nodeOf(rootId, undefined, "", { kind: "directory" }));
  }

  /** Returns the node of an entry, and counts it as returned once more. */
  register(parent: NameNode, name: string, found: NameTarget): Attributes {
    return attributesOf(this.nodes.register(keyOf(parent, name), (id) => nodeOf(id, parent, name, found)));
  }

  /** Returns what an entry is. @throws FuseError if it does not exist */
  async find(above: NameNode, name: string, signal: AbortSignal = never): Promise<NameTarget> {
    const { tree } = above;
    if (tree === undefined) return this.#name(name, signal);
    const segments = [...pathOf(above).segments, name];
    const found = await asFuseError(tree.files.withTree({ signal }, (root) => lookup(root, { segments })));
    if (found instanceof Folder) return { kind: "directory", facts: found.facts, tree };
    return { kind: found.node.unixfs.type === "Symlink" ? "symlink" : "file", file: found.node, tree };
  }

  /** Returns where an entry is changed. @throws FuseError if nothing can be changed there */
  locate({ parent, name }: EntryName): TreeLocation {
    const above = this.nodes.get(parent);
    if (above.tree === undefined) throw new FuseError("EPERM");
    if (above.unlinked) throw new FuseError("ENOENT");
    return { above, tree: above.tree, path: namespacePath(`/${[...pathOf(above).segments, name].join("/")}`) };
  }

  /** To be called when an entry was removed. Programs that have it open can still use it. */
  unlink(above: NameNode, name: string): void {
    const node = this.nodes.find(keyOf(above, name));
    if (node === undefined) return;
    node.unlinked = true;
    this.nodes.rekey(node.id, undefined);
  }

  /**
   * Returns the roots of open trees, which garbage collection must spare. The root of a tree that
   * is being opened is one of `storedTreeRoots`.
   */
  async roots(): Promise<CID[]> {
    return (await Promise.all([...this.#open].map(({ files }) => files.roots()))).flat();
  }

  async close(): Promise<void> {
    this.#leaving.abort();
    await Promise.allSettled(this.#trees.values());
    await Promise.all([...this.#open].map((tree) => tree.close()));
  }

  /** Returns what a name at the root points to. */
  async #name(name: string, signal: AbortSignal): Promise<NameTarget> {
    const keys = await this.#deps.keys();
    if (name === localLink) return { kind: "symlink", target: String(keys.find((key) => key.name === self)?.id) };
    const own = keys.find(({ id }) => id.toString() === name || id.toCID().toString() === name);
    if (own !== undefined) {
      const tree = await this.#opened(own);
      // A missing or invalid root is reported when somebody lists the directory.
      const facts = await tree.files
        .withTree({ offline: true, signal }, async (root) => root.facts)
        .catch(() => undefined);
      return { kind: "directory", facts, tree };
    }
    const path = await this.#deps.names.resolve(name, { signal }).catch((error: unknown) => {
      throw new FuseError(signal.aborted ? "EINTR" : "ENOENT", { cause: error });
    });
    const { namespace, root, segments } = parsePath(path);
    if (namespace !== "ipfs") throw new FuseError("EIO");
    return { kind: "symlink", target: [this.#deps.contents, root, ...segments].join("/") };
  }

  #opened(key: NamedKey): Promise<OwnTree> {
    const id = key.id.toString();
    let opening = this.#trees.get(id);
    if (opening === undefined) {
      opening = OwnTree.open(this.#deps, key, this.#leaving.signal);
      opening.then(
        (tree) => this.#open.add(tree),
        () => this.#trees.delete(id),
      );
      this.#trees.set(id, opening);
    }
    return opening;
  }
}

/** Converts failures for missing entries and a full disk to FuseErrors. */
export async function asFuseError<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isMissing(error)) throw new FuseError("ENOENT", { cause: error });
    if (error instanceof NodeError && error.code === "STORE_FULL") throw new FuseError("ENOSPC", { cause: error });
    throw error;
  }
}
