/** Copies the content of a repo into a shared store, which hosts may be using. */

import { dirname, join } from "node:path";
import type { CID } from "multiformats/cid";
import { copyTrees, treesOf } from "../../content/mfs/key_trees.ts";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import { Filestore } from "../../storage/filestore/filestore.ts";
import { ReferenceStore } from "../../storage/filestore/reference_store.ts";
import { KeyFiles } from "../../storage/keystore/key_files.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { openRepo, type Repo, type RepoOptions } from "../../storage/repo/repo.ts";
import type { SharedStoreSettings } from "../../storage/shared/settings.ts";
import { counted } from "../../util/counted.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { type CopyOptions, copyAllMetadata, copyBlocks } from "../open_stores/copy.ts";
import { type Notice, openBlocks, openMetadata } from "../open_stores/engines.ts";
import { settleLostMetadata } from "../open_stores/lost_metadata.ts";
import type { SharedStores } from "../open_stores/open_shared.ts";
import { migratingKey, type Unfinished, unfinishedMigration } from "../open_stores/unfinished.ts";
import { withSharedStores } from "../open_stores/visit_shared.ts";
import { giveRoot, mergeKeys, refuseConflicts } from "./conflicts.ts";
import { mergeMetadata, type OnConflict } from "./merge_metadata.ts";
import { type Migrated, requireBlocks, requireEntries } from "./migrated.ts";
import { type Source, sourceOf } from "./source.ts";

export interface ToSharedOptions extends CopyOptions, Pick<RepoOptions, "data"> {
  /** How to resolve conflicts; by default, the migration fails before it writes anything. */
  readonly onConflict?: OnConflict | undefined;
  /**
   * Whether to store the content that filestore and urlstore refer to; by default, such references
   * are an error.
   */
  readonly copyReferences?: boolean | undefined;
  /** Whether to read every block in the shared store at the end, and compare it with its hash. */
  readonly verify?: boolean | undefined;
}

/**
 * Copies blocks, pins, files, trees written through mounts, published names, keys for names (if
 * hosts share them) and the state of modules. The repo stays unchanged. Hosts may use the store
 * meanwhile, and their content stays. After an interruption, the same call continues.
 * @throws NodeError REPO_LOCKED, STORE_UNAVAILABLE, SESSION_LOST, BLOCK_CORRUPT; for content of
 * both that cannot be joined; the signal's reason when it aborts
 */
export async function migrateToShared(
  from: string,
  settings: SharedStoreSettings,
  { data, ...options }: ToSharedOptions = {},
): Promise<Migrated> {
  const { onNotice } = options;
  const repo = await openRepo(from, { init: false, data, onNotice });
  try {
    return await withSharedStores(
      settings,
      (stores, folder) => new Copying(repo, stores, options).from(join(folder, "source")),
      { onNotice },
    );
  } finally {
    await repo.close();
  }
}

class Copying {
  readonly #repo: Repo;
  readonly #to: SharedStores;
  readonly #options: Omit<ToSharedOptions, "data">;
  readonly #onNotice: Notice;
  readonly #keys: KeyFiles;
  /** Blocks whose reference points to missing content. */
  readonly #lost = new Set<string>();

  constructor(repo: Repo, to: SharedStores, options: Omit<ToSharedOptions, "data">) {
    this.#repo = repo;
    this.#to = to;
    this.#options = options;
    this.#onNotice = options.onNotice ?? (() => {});
    this.#keys = new KeyFiles(join(repo.path, "keystore"));
  }

  /** `folder` is for a copy of the repo's metadata. */
  async from(folder: string): Promise<Migrated> {
    const { config, stores } = this.#repo;
    const onNotice = this.#onNotice;
    const blocks = await openBlocks(stores, onNotice);
    try {
      if (blocks.joinsForms === true || stores.foreign?.hasBlocks === true) {
        throw failure("MIGRATION_REFUSED", {
          reason:
            "a repo of Kubo does not tell the codecs of its blocks: copy it to a folder first, with `modhost node migrate FROM TO`, and that one then",
        });
      }
      await settleLostMetadata(stores, blocks, { onNotice });
      const metadata = await openMetadata({ ...stores, metadata: folder }, onNotice);
      try {
        const { signal } = this.#options;
        await copyAllMetadata(stores, { blocks, metadata }, folder, { onNotice, signal });
        const whole = await this.#withReferences(blocks, metadata);
        const source = await sourceOf(whole, metadata, () => config.value("Experimental.ShardingEnabled"));
        return await this.#copy(source);
      } finally {
        await metadata.close();
      }
    } finally {
      await blocks.close();
    }
  }

  async #withReferences(blocks: BlockStore, metadata: MetadataStore): Promise<BlockStore> {
    const count = await new ReferenceStore(metadata).count();
    if (count === 0) return blocks;
    if (this.#options.copyReferences !== true) {
      throw failure("MIGRATION_REFUSED", {
        reason:
          `${this.#repo.path} refers to files or URLs for ${counted(count, "block")} (filestore, urlstore), which a shared store cannot: ` +
          "--copy-references stores what they refer to",
      });
    }
    return new Filestore(blocks, metadata, { root: dirname(this.#repo.path), files: true, urls: true });
  }

  async #copy(source: Source): Promise<Migrated> {
    const { path, identity } = this.#repo;
    const { blocks, metadata, keys, shared, collections } = this.#to;
    const { onProgress, signal, verify = false } = this.#options;
    const noteKey = migratingKey(identity.peerId.toString());
    const begun = unfinishedMigration(noteKey, await metadata.get(noteKey));
    // If an earlier attempt has begun to merge, its entries stay as hosts have changed them since.
    const { onConflict = begun?.isMerging === true ? "keep" : "refuse" } = this.#options;
    await refuseConflicts({ source, sourceKeys: this.#keys, metadata, keys }, onConflict);
    const note = (unfinished: Unfinished) =>
      metadata.transaction((writer) => writer.put(noteKey, Buffer.from(JSON.stringify(unfinished))));
    if (begun === undefined) await note({ folder: path });
    // Protects all blocks of the source from garbage collection on other hosts, including blocks
    // that the store already has.
    collections.serve({
      alone: (run) => run(),
      voidCalls: () => {},
      mark: async () => {
        throw new Error("a migration does not collect garbage");
      },
      guarded: () => source.blocks.keys(),
    });
    const { session } = shared;
    const check = () => {
      signal?.throwIfAborted();
      if (shared.session !== session) throw failure("SESSION_LOST");
    };
    const onMissing = (cid: CID, error: unknown) => this.#miss(cid, error);
    const copied = await copyBlocks(source.blocks, blocks, { onProgress, onMissing, signal });
    const isLost = (cid: CID) => this.#lost.has(cid.toString());
    await requireBlocks(source.blocks.keys(), blocks, { total: copied.blocks, isLost, verify, onProgress, signal });
    await note({ folder: path, isMerging: true });
    const merging = { onConflict, check, signal };
    const merged = await mergeMetadata(source.metadata, metadata, merging);
    await copyTrees(treesOf(source.metadata), treesOf(metadata, identity.peerId.toString()), check);
    const named = await this.#giveKeys();
    await requireEntries(source.metadata, metadata);
    // The root comes last: whoever can see the files then finds everything that they refer to.
    if (source.root !== undefined) await giveRoot(source.root, metadata, merging);
    await metadata.transaction((writer) => {
      check();
      writer.delete(noteKey);
    });
    return { ...copied, ...merged, keys: named, files: source.root };
  }

  async #giveKeys(): Promise<number> {
    const { keys } = this.#to;
    if (keys !== undefined) return mergeKeys(this.#keys, keys);
    const { length } = await this.#keys.names();
    if (length > 0) {
      this.#onNotice(
        `${counted(length, "key for names stays", "keys for names stay")} in ${join(this.#repo.path, "keystore")}: hosts share keys only if node_store has a keys_secret`,
      );
    }
    return 0;
  }

  #miss(cid: CID, error: unknown): undefined {
    if (!NodeError.is(error) || error.code !== "REFERENCE_BROKEN") throw error;
    this.#lost.add(cid.toString());
    this.#onNotice(`${cid} is lost: ${error.message}`);
    return undefined;
  }
}
