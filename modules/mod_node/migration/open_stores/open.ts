/** Opens the stores of a repo: those of this node, and those of go-ipfs with what it keeps beside. */
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { type CopyOptions, copyStores, exists } from "./copy.ts";
import { openBlocks, openMetadata, type Stores, takeOver } from "./engines.ts";

/** Is in the metadata of stores that are apart from their repo when they have what the repo had. */
const filledKey = "node/filled";

/**
 * What go-ipfs has pinned is in the metadata when it resolves, so before anybody could collect garbage. Stores that are
 * apart from their repo begin as a copy of what the repo has.
 *
 * @throws NodeError STORE_FULL, STORE_BROKEN, LEVELS_HELD, LEVELS_BROKEN; the signal's reason when it is aborted
 */
export async function openStores(
  { path, stores: places, aside }: Repo,
  { onNotice = () => {}, signal }: Pick<CopyOptions, "onNotice" | "signal"> = {},
): Promise<Stores> {
  const blocks = await openBlocks(places, onNotice);
  let metadata: MetadataStore | undefined;
  try {
    metadata = await openMetadata(places);
    const stores = { blocks, metadata };
    const { levels, metadata: place } = places;
    if (levels !== undefined) await takeOver({ levels, place, to: stores, onNotice });
    if (aside !== undefined && !(await metadata.has(filledKey))) {
      if (await exists(aside.blocks)) {
        onNotice(`what ${path} holds is being copied to ${places.blocks}, once`);
        await copyStores(aside, stores, place, { onNotice, signal });
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
