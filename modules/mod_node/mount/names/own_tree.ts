/** What stands under a key of the node's own: a tree that is edited, kept, and published. */
import { CID } from "multiformats/cid";
import { Journal } from "../../content/mfs/journal.ts";
import { type ChangeOptions, Namespace, type NamespaceDeps } from "../../content/mfs/namespace.ts";
import { flush } from "../../content/mfs/operations.ts";
import { namespacePath } from "../../content/mfs/path.ts";
import type { PeerId } from "../../formats/peer_id.ts";
import type { Names } from "../../network/ipns/names.ts";
import type { NamedKey } from "../../storage/keystore/keystore.ts";
import { prefixedStore } from "../../storage/metadata/prefixed_store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { Publisher } from "./publisher.ts";

/** Where trees are kept, each below the text of its key's identifier. */
const room = "mounts/";
/** What was published last from here. */
const publishedKey = "published";
/** Of changes: the disk follows when something asks for that. */
export const unflushed: ChangeOptions = { flush: false };

/** Milliseconds for which what is closed waits for others: to hear of it, or to send what a change needs. */
export const CLOSE_TIMEOUT_MS = 3000;
/** Milliseconds for which others are asked what an own name stands for. */
const MAX_RESOLVE_MS = 10_000;

export interface TreeDeps extends NamespaceDeps {
  readonly names: Pick<Names, "key" | "publish" | "resolve">;
  /** The block at a content path; peers are asked until the signal says so. */
  blockAt(path: string, signal: AbortSignal): Promise<CID>;
}

export class OwnTree {
  readonly key: NamedKey;
  readonly files: Namespace;
  readonly #publisher: Publisher;
  readonly #leaving = new AbortController();
  readonly #noPeers = new AbortController();

  /** As it was left here; or as it was published since from elsewhere. */
  static async open(deps: TreeDeps, key: NamedKey, signal: AbortSignal): Promise<OwnTree> {
    const kept = prefixedStore(deps.metadata, `${room}${key.id}/`);
    const published = await kept.get(publishedKey);
    const here = await currentValue(deps, key.id, { offline: true, signal });
    const value = here ?? (await currentValue(deps, key.id, { offline: false, signal }));
    signal.throwIfAborted();
    if (value !== undefined && (published === undefined || !value.equals(CID.decode(published)))) {
      await new Journal(kept).keep(value);
      await keepPublished(kept, value);
    }
    return new OwnTree(deps, key, kept);
  }

  private constructor(deps: TreeDeps, key: NamedKey, kept: MetadataStore) {
    this.key = key;
    this.files = new Namespace({ ...deps, metadata: kept, noPeers: this.#noPeers.signal });
    const { signal } = this.#leaving;
    const publish = async () => {
      const root = await flush(this.files, namespacePath("/"), { signal });
      const last = await kept.get(publishedKey);
      if (last !== undefined && CID.decode(last).equals(root)) return;
      const { names } = deps;
      try {
        await names.publish(await names.key(key.name), `/ipfs/${root}`, { signal });
      } finally {
        // The record stays here when nobody could be told.
        if ((await currentValue(deps, key.id, { offline: true, signal }))?.equals(root))
          await keepPublished(kept, root);
      }
    };
    this.#publisher = new Publisher(publish, (error) =>
      deps.log.write("fuse/ipns", "error", `${key.id} was not published: ${(error as Error).message}`),
    );
  }

  /** To be called behind a change: it is published in a while. */
  changed(): void {
    this.#publisher.touch();
  }

  /** What waits for a block from a peer fails, now and from now on. */
  stopAskingPeers(): void {
    this.#noPeers.abort();
  }

  /** Publishes and keeps what has changed. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.#leaving.abort(), CLOSE_TIMEOUT_MS);
    await this.#publisher.settle();
    clearTimeout(timer);
    await this.files.close();
  }
}

/** Undefined when the name stands for nothing yet, or nobody can tell. */
async function currentValue(
  { names, blockAt }: TreeDeps,
  id: PeerId,
  { offline, signal }: { readonly offline: boolean; readonly signal: AbortSignal },
): Promise<CID | undefined> {
  // What is known here can be told to the end.
  const asking = { offline, timeout: MAX_RESOLVE_MS, ...(offline ? {} : { signal }) };
  const path = await names.resolve(id.toString(), asking).catch(() => undefined);
  return path === undefined ? undefined : blockAt(path, AbortSignal.any([signal, AbortSignal.timeout(MAX_RESOLVE_MS)]));
}

const keepPublished = (kept: MetadataStore, { bytes }: CID): Promise<void> =>
  kept.transaction((writer) => writer.put(publishedKey, bytes));

/** What garbage collection has to keep of the trees as they were left, open or not. */
export async function keptRoots(metadata: MetadataStore): Promise<CID[]> {
  const kept: CID[] = [];
  const rooms = new Set<string>();
  for await (const [key] of metadata.range({ prefix: room }))
    rooms.add(key.slice(0, key.indexOf("/", room.length) + 1));
  for (const name of rooms) {
    const journal = new Journal(prefixedStore(metadata, name));
    const root = await journal.root();
    if (root !== undefined) kept.push(root);
    for (const change of await journal.changes()) if ("put" in change) kept.push(change.put.cid);
  }
  return kept;
}
