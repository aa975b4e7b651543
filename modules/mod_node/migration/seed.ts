/** The initial content of a repo: the empty directory, pinned, and published under the node's own name. */

import type { Pins } from "../content/pins/pins.ts";
import { defaultCid } from "../content/unixfs/build.ts";
import { buildDirectory } from "../content/unixfs/directory.ts";
import type { Names } from "../network/ipns/names.ts";
import type { BlockService } from "../storage/blockstore/block_service.ts";
import type { Block } from "../storage/blockstore/store.ts";
import { self } from "../storage/keystore/keystore.ts";
import type { MetadataStore } from "../storage/metadata/store.ts";

/** Set in the metadata once that was done, or need not be done. */
export const seededKey = "node/seeded";

interface SeedDeps {
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  readonly pins: Pins;
  readonly names: Names;
}

/** Runs once in the life of a repo, even when its making was interrupted: what is unpinned later stays unpinned. */
export async function seed({ blocks, metadata, pins, names }: SeedDeps): Promise<void> {
  if (await metadata.has(seededKey)) return;
  const put = (block: Block) => blocks.put([block]);
  const { cid } = await buildDirectory([], { ...defaultCid, sharded: false }, put);
  await blocks.store.sync();
  await pins.keep([cid]);
  await names.publish(await names.key(self), `/ipfs/${cid}`, { offline: true });
  await metadata.transaction((writer) => writer.put(seededKey, new Uint8Array([1])));
}
