/**
 * The trees of a node's keys, which mounts show in addition to the tree of the files. Their keys in
 * the metadata begin with `mounts/<key>/` for a single node, and with `mounts/<peer>/<key>/` for
 * hosts that share the metadata: each host changes its own trees only.
 */
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import { prefixedStore } from "../../storage/metadata/prefixed_store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { Journal } from "./journal.ts";

/** Prefix of all trees. */
export const treesPrefix = "mounts/";

/** The trees of a node. For hosts that share the metadata: of the host with this peer ID. */
export const treesOf = (metadata: MetadataStore, host?: string): MetadataStore =>
  prefixedStore(metadata, host === undefined ? treesPrefix : `${treesPrefix}${host}/`);

/** The tree of a key, within the trees of a node. */
export const treeOf = (trees: MetadataStore, key: PeerId): MetadataStore => prefixedStore(trees, `${key}/`);

/**
 * Returns the roots of all stored trees of all hosts, whether they are open or not. Garbage
 * collection must spare what is below them.
 */
export async function storedTreeRoots(metadata: MetadataStore): Promise<CID[]> {
  const names = new Set<string>();
  for await (const [key] of metadata.range({ prefix: treesPrefix })) {
    const end = key.lastIndexOf("/files/");
    if (end >= 0) names.add(key.slice(0, end + 1));
  }
  const roots: CID[] = [];
  for (const name of names) {
    const { root, changes } = await new Journal(prefixedStore(metadata, name)).state();
    if (root !== undefined) roots.push(root);
    for (const change of changes) if ("put" in change) roots.push(change.put.cid);
  }
  return roots;
}

/** A tree of a host, if several hosts share the metadata. */
export interface HostTree {
  /** Peer ID of the host. */
  readonly host: string;
  /** ID of the key. */
  readonly key: string;
  /** The root without the changes since it was stored. */
  readonly root: CID | undefined;
}

export async function hostTrees(metadata: MetadataStore): Promise<HostTree[]> {
  const keys = await Array.fromAsync(metadata.range({ prefix: treesPrefix }), ([key]) => key);
  const names = new Set(keys.map((key) => key.split("/").slice(1, 3).join("/")));
  const found: HostTree[] = [];
  for (const name of names) {
    const [host = "", key = ""] = name.split("/");
    found.push({ host, key, root: await new Journal(prefixedStore(metadata, `${treesPrefix}${name}/`)).root() });
  }
  return found;
}

/**
 * Removes all trees of a host that does not use them. Garbage collection may then remove their
 * blocks.
 */
export async function removeTrees(trees: MetadataStore): Promise<void> {
  await trees.transaction((writer) => {
    for (const [key] of [...writer.range()]) writer.delete(key);
  });
}

/**
 * Copies trees, each in one transaction. A tree that exists in `to` is not replaced. Both
 * parameters are results of `treesOf`. `check` is called within each transaction and may throw to
 * stop it.
 */
export async function copyTrees(from: MetadataStore, to: MetadataStore, check = () => {}): Promise<void> {
  const entries = await Array.fromAsync(from.range());
  for (const [tree, parts] of Map.groupBy(entries, ([key]) => key.slice(0, key.indexOf("/") + 1))) {
    await to.transaction((writer) => {
      check();
      for (const _ of writer.range({ prefix: tree, limit: 1 })) return;
      for (const [key, value] of parts) writer.put(key, value);
    });
  }
}

/** Moves trees; `from` is empty afterwards. */
export async function moveTrees(from: MetadataStore, to: MetadataStore): Promise<void> {
  if ((await from.keys({ limit: 1 })).length === 0) return;
  await copyTrees(from, to);
  await removeTrees(from);
}
