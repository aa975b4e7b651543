/** The tree of one of the node's own keys: an MFS tree that is changed, stored and published. */
import { CID } from "multiformats/cid";
import { Journal } from "../../content/mfs/journal.ts";
import { treeOf, treesOf } from "../../content/mfs/key_trees.ts";
import { type ChangeOptions, Namespace, type NamespaceDeps } from "../../content/mfs/namespace.ts";
import { changeCid, flush } from "../../content/mfs/operations.ts";
import { namespacePath } from "../../content/mfs/path.ts";
import type { CidSettings } from "../../content/unixfs/build.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import type { Names } from "../../network/ipns/names.ts";
import type { NamedKey } from "../../storage/keystore/keystore.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { ImportSettings } from "./import_settings.ts";
import { Publisher } from "./publisher.ts";

/** Key of the CID that this tree published last. */
const publishedKey = "published";
/** Milliseconds that closing waits for peers, to publish or to fetch blocks. */
export const CLOSE_TIMEOUT_MS = 3000;
/** Milliseconds for resolving one of the node's own names. */
const MAX_RESOLVE_MS = 10_000;

export interface TreeDeps extends NamespaceDeps {
  /** Peer ID of this host, if several hosts share the metadata. Each host has its own trees. */
  readonly host?: string | undefined;
  readonly imports: ImportSettings;
  readonly names: Pick<Names, "key" | "publish" | "resolve">;
  /** Resolves to the block at a content path. Fetches from peers until the signal aborts. */
  blockAt(path: string, signal: AbortSignal): Promise<CID>;
}

export class OwnTree {
  readonly key: NamedKey;
  readonly files: Namespace;
  /**
   * The options of changes. A change is durable only on request, or at once if several hosts share
   * the store.
   */
  readonly changing: ChangeOptions;
  readonly #publisher: Publisher;
  readonly #leaving = new AbortController();
  readonly #noPeers = new AbortController();

  /**
   * Opens the stored tree. If another node has published the name since, the tree becomes the
   * published one.
   */
  static async open(deps: TreeDeps, key: NamedKey, signal: AbortSignal): Promise<OwnTree> {
    const metadata = treeOf(treesOf(deps.metadata, deps.host), key.id);
    const published = await metadata.get(publishedKey);
    const here = await currentValue(deps, key.id, { offline: true, signal });
    const value = here ?? (await currentValue(deps, key.id, { offline: false, signal }));
    signal.throwIfAborted();
    if (value !== undefined && (published === undefined || !value.equals(CID.decode(published)))) {
      await new Journal(metadata).replace(value);
      await keepPublished(metadata, value);
    }
    const tree = new OwnTree(deps, key, metadata);
    await tree.#takeForm(deps.imports.form, signal);
    return tree;
  }

  private constructor(deps: TreeDeps, key: NamedKey, metadata: MetadataStore) {
    this.key = key;
    this.changing = { flush: false, sharding: deps.imports.sharding };
    const shared = deps.host !== undefined;
    this.files = new Namespace({ ...deps, metadata, shared, isOwn: true, noPeers: this.#noPeers.signal });
    const { signal } = this.#leaving;
    const publish = async () => {
      const root = await flush(this.files, namespacePath("/"), { signal });
      const last = await metadata.get(publishedKey);
      if (last !== undefined && CID.decode(last).equals(root)) return;
      const { names } = deps;
      try {
        await names.publish(await names.key(key.name), `/ipfs/${root}`, { signal });
      } finally {
        // The record is stored here even if no peer could be reached.
        if ((await currentValue(deps, key.id, { offline: true, signal }))?.equals(root))
          await keepPublished(metadata, root);
      }
    };
    this.#publisher = new Publisher(publish, (error) =>
      deps.log.write("fuse/ipns", "error", `${key.id} was not published: ${(error as Error).message}`),
    );
  }

  /** Sets the form of CIDs for everything new in the tree, unless its root cannot be read. */
  async #takeForm(form: CidSettings | undefined, signal: AbortSignal): Promise<void> {
    if (form === undefined) return;
    const now = await this.files
      .withTree({ offline: true, signal }, async (root) => root.settings)
      .catch(() => undefined);
    if (now === undefined || (now.version === form.version && now.hash.code === form.hash.code)) return;
    await changeCid(this.files, namespacePath("/"), form, { ...this.changing, signal });
  }

  /** To be called after a change. Publishes the tree after a while. */
  changed(): void {
    this.#publisher.touch();
  }

  /** Aborts running fetches, and rejects later ones. */
  abortFetches(): void {
    this.#noPeers.abort();
  }

  /** Publishes and stores the changes. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.#leaving.abort(), CLOSE_TIMEOUT_MS);
    await this.#publisher.settle();
    clearTimeout(timer);
    await this.files.close();
  }
}

/** Returns undefined if nothing was published under the name, or if it cannot be resolved. */
async function currentValue(
  { names, blockAt }: TreeDeps,
  id: PeerId,
  { offline, signal }: { readonly offline: boolean; readonly signal: AbortSignal },
): Promise<CID | undefined> {
  // A local lookup is not aborted.
  const options = { offline, timeout: MAX_RESOLVE_MS, ...(offline ? {} : { signal }) };
  const path = await names.resolve(id.toString(), options).catch(() => undefined);
  return path === undefined ? undefined : blockAt(path, AbortSignal.any([signal, AbortSignal.timeout(MAX_RESOLVE_MS)]));
}

const keepPublished = (metadata: MetadataStore, { bytes }: CID): Promise<void> =>
  metadata.transaction((writer) => writer.put(publishedKey, bytes));
