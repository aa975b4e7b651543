/**
 * Trees besides that of the files: one behind each of a node's keys, as mounts show them. Where
 * they are in the metadata: that of a node alone has `mounts/<key>/`; that of several hosts
 * `mounts/<peer>/<key>/`, as each host changes its own trees only.
 */
import type { CID } from "multiformats/cid";
import type { PeerId } from "../../formats/peer_id.ts";
import { prefixedStore } from "../../storage/metadata/prefixed_store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { Journal } from "./journal.ts";

/** Prefix of all trees. */
export const treesPrefix = "mounts/";

/** The trees of a node; where several hosts have the metadata, of the one with this peer ID. */
export const treesOf = (metadata: MetadataStore, host?: string): MetadataStore =>
  prefixedStore(metadata, host === undefined ? treesPrefix : `${treesPrefix}${host}/`);

/** The tree of a key, among the trees of a node. */
export const treeOf = (trees: MetadataStore, key: PeerId): MetadataStore => prefixedStore(trees, `${key}/`);

/**
 * The roots of all stored trees, open or not, which garbage collection must keep: those of every
 * host that has the metadata.
 */
export async function keptRoots(metadata: MetadataStore): Promise<CID[]> {
  const names = new Set<string>();
  for await (const [key] of metadata.range({ prefix: treesPrefix })) {
    const end = key.lastIndexOf("/files/");
    if (end >= 0) names.add(key.slice(0, end + 1));
  }
  const kept: CID[] = [];
  for (const name of names) {
    const { root, changes } = await new Journal(prefixedStore(metadata, name)).state();
    if (root !== undefined) kept.push(root);
    for (const change of changes) if ("put" in change) kept.push(change.put.cid);
  }
  return kept;
}

/** A tree of a host, in metadata that several have. */
export interface HostTree {
  /** Its peer ID. */
  readonly host: string;
  /** ID of the key. */
  readonly key: string;
  /** Without the changes since it was stored. */
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

/** All trees of a host that does not use them: garbage collection may remove what is in them. */
export async function removeTrees(trees: MetadataStore): Promise<void> {
  await trees.transaction((writer) => {
    for (const [key] of [...writer.range()]) writer.delete(key);
  });
}

/**
 * Copies trees, each in one transaction; one that `to` has stays as it is there. Both are what
 * `treesOf` gives. `check` is called within each transaction, to throw what comes in the way.
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

/** The same; `from` has none afterwards. */
export async function moveTrees(from: MetadataStore, to: MetadataStore): Promise<void> {
  if ((await from.keys({ limit: 1 })).length === 0) return;
  await copyTrees(from, to);
  await removeTrees(from);
}
