/** Opens the stores of a repo, and imports what go-ipfs has changed in it. */
import type { MakeRoom } from "../../storage/disk_reserve.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { type CopyOptions, copyStores, exists } from "./copy.ts";
import { importFromGoIpfs, openBlocks, openMetadata, type Stores } from "./engines.ts";

/** Set in stores outside of their repo once they have a copy of what the repo had. */
const filledKey = "node/filled";

export interface OpenOptions extends Pick<CopyOptions, "onNotice" | "signal"> {
  /** Called when the disk has no room for a write, which is then tried again. */
  readonly makeRoom?: MakeRoom | undefined;
}

/**
 * Opens the stores of a repo. When it resolves the pins of go-ipfs are in the metadata, so before any garbage
 * collection. Stores outside of their repo begin as a copy of what the repo has.
 *
 * @throws NodeError STORE_FULL, STORE_BROKEN, LEVELDB_IN_USE, LEVELDB_DAMAGED; the signal's reason when it aborts
 */
export async function openStores(
  { path, stores: paths, repoStores }: Repo,
  { onNotice = () => {}, signal, makeRoom }: OpenOptions = {},
): Promise<Stores> {
  const blocks = await openBlocks(paths, onNotice, makeRoom);
  let metadata: MetadataStore | undefined;
  try {
    metadata = await openMetadata(paths, onNotice, makeRoom);
    const stores = { blocks, metadata };
    const { levelDb, metadata: metadataFolder } = paths;
    if (levelDb !== undefined) await importFromGoIpfs({ levelDb, metadataFolder, to: stores, onNotice });
    if (repoStores !== undefined && !(await metadata.has(filledKey))) {
      if (await exists(repoStores.blocks)) {
        onNotice(`what ${path} holds is being copied to ${paths.blocks}, once`);
        await copyStores(repoStores, stores, metadataFolder, { onNotice, signal });
      }
      await metadata.transaction((writer) => writer.put(filledKey, new Uint8Array([1])));
    }
    return stores;
  } catch (error) {
    await metadata?.close().catch(() => {});
    await blocks.close().catch(() => {});
    throw error;
  }
}
