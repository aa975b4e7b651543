/** What a fresh repo holds: the empty directory, pinned. */
import type { Blocks } from "./blocks/blocks.ts";
import type { Block } from "./blocks/store.ts";
import type { MetadataStore } from "./metadata/store.ts";
import type { Pins } from "./pins/pins.ts";
import { defaultCid } from "./unixfs/build.ts";
import { buildDirectory } from "./unixfs/directory.ts";

const marker = "node/seeded";

interface Ground {
  readonly blocks: Blocks;
  readonly metadata: MetadataStore;
  readonly pins: Pins;
}

/** Once in the life of a repo, even if its making was cut short: what is unpinned later stays unpinned. */
export async function seed({ blocks, metadata, pins }: Ground): Promise<void> {
  if (await metadata.has(marker)) return;
  const put = (block: Block) => blocks.put([block]);
  const { cid } = await buildDirectory([], { ...defaultCid, sharded: false }, put);
  await blocks.store.sync();
  await pins.keep([cid]);
  await metadata.transaction((writer) => writer.put(marker, new Uint8Array([1])));
}
