/** Opens the stores of a repo, and imports the changes that go-ipfs or Kubo has made in it. */
import type { MakeRoom } from "../../storage/disk_reserve.ts";
import type { CopiedMetadata } from "../../storage/metadata/copied.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { StorePaths } from "../../storage/repo/datastore.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { type CopyOptions, copyStores, exists } from "./copy.ts";
import { importForeign, type Notice, openBlocks, openCopiedMetadata, type Stores } from "./engines.ts";
import { type LostMetadata, settleLostMetadata } from "./lost_metadata.ts";

/** Set once the stores contain the blocks that the repo had elsewhere. */
const filledKey = "node/filled";

export interface OpenOptions extends Pick<CopyOptions, "onNotice" | "signal"> {
  /** Called when the disk is too full for a write. The write is then tried again. */
  readonly makeRoom?: MakeRoom | undefined;
  /** How to handle blocks without metadata. By default, opening fails. */
  readonly lostMetadata?: LostMetadata | undefined;
}

/**
 * Opens the stores of a repo. When it resolves, pins of go-ipfs or Kubo are in the metadata, so
 * garbage collection respects them. Stores outside their repo begin as a copy of the repo's
 * content.
 * @throws NodeError STORE_FULL, STORE_BROKEN, METADATA_LOST, DATABASE_IN_USE, DATABASE_DAMAGED; the
 * signal's reason when it aborts
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
    const { metadata: metadataFolder } = paths;
    await importInto(stores, paths, { onNotice, signal });
    if (repoStores !== undefined && !(await metadata.has(filledKey))) {
      if (repoStores.foreign?.hasBlocks === true || (await exists(repoStores.blocks))) {
        onNotice(`copying the content of ${path} to ${paths.blocks}; this happens once`);
        await copyStores(repoStores, stores, metadataFolder, { onNotice, signal });
      }
      await markFilled(metadata);
    }
    return stores;
  } catch (error) {
    await metadata?.abandon().catch(() => {});
    await blocks.close().catch(() => {});
    throw error;
  }
}

/** Imports the changes of the program that created the repo. */
async function importInto(
  stores: Stores,
  { foreign, blocks, metadata: metadataFolder }: StorePaths,
  { onNotice, signal }: Pick<CopyOptions, "signal"> & { readonly onNotice: Notice },
): Promise<void> {
  if (foreign === undefined) return;
  const isFirst = foreign.hasBlocks === true && !(await stores.metadata.has(filledKey));
  if (isFirst)
    onNotice(`copying the blocks of ${foreign.program} from ${foreign.path} to ${blocks}; this happens once`);
  await importForeign({ from: foreign, metadataFolder, to: stores, onNotice, signal });
  if (isFirst) await markFilled(stores.metadata);
}

const markFilled = (metadata: MetadataStore): Promise<unknown> =>
  metadata.transaction((writer) => writer.put(filledKey, new Uint8Array([1])));
