/** Opens the stores of a repo, and imports what go-ipfs has changed in it. */
import type { MakeRoom } from "../../storage/disk_reserve.ts";
import type { CopiedMetadata } from "../../storage/metadata/copied.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { type CopyOptions, copyStores, exists } from "./copy.ts";
import { importFromGoIpfs, openBlocks, openCopiedMetadata, type Stores } from "./engines.ts";
import { type LostMetadata, settleLostMetadata } from "./lost_metadata.ts";

/** Set in stores outside of their repo once they have a copy of what the repo had. */
const filledKey = "node/filled";

export interface OpenOptions extends Pick<CopyOptions, "onNotice" | "signal"> {
  /** Called when the disk has no room for a write, which is then tried again. */
  readonly makeRoom?: MakeRoom | undefined;
  /** What is done when there are blocks, and no metadata: by default the start is refused. */
  readonly lostMetadata?: LostMetadata | undefined;
}

/**
 * Opens the stores of a repo. When it resolves the pins of go-ipfs are in the metadata, so before any garbage
 * collection. Stores outside of their repo begin as a copy of what the repo has.
 *
 * @throws NodeError STORE_FULL, STORE_BROKEN, METADATA_LOST, LEVELDB_IN_USE, LEVELDB_DAMAGED; the signal's reason when
 * it aborts
 */
export async function openStores(
  { path, stores: paths, repoStores }: Repo,
  { onNotice = () => {}, signal, makeRoom, lostMetadata }: OpenOptions = {},
): Promise<Stores> {
  const blocks = await openBlocks(paths, onNotice, makeRoom);
  let metadata: CopiedMetadata | undefined;
  try {
    await settleLostMetadata(paths, blocks, { lostMetadata, onNotice });
    metadata = await openCopiedMetadata(paths, onNotice, makeRoom);
    const copied = metadata;
    const stores = { blocks, metadata, copyMetadata: () => copied.copy() };
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
    await metadata?.abandon().catch(() => {});
    await blocks.close().catch(() => {});
    throw error;
  }
}
