/**
 * Adds the initial content of a repo: the empty directory, pinned and published under the node's
 * own name.
 */

import type { Pins } from "../content/pins/pins.ts";
import { defaultCid } from "../content/unixfs/build.ts";
import { buildDirectory } from "../content/unixfs/directory.ts";
import type { Names } from "../network/ipns/names.ts";
import { publishedKey } from "../network/ipns_record/keys.ts";
import type { BlockService } from "../storage/blockstore/block_service.ts";
import type { Block } from "../storage/blockstore/store.ts";
import { self } from "../storage/keystore/keystore.ts";
import type { MetadataStore } from "../storage/metadata/store.ts";
import type { Repo } from "../storage/repo/repo.ts";

/** Set in the metadata once the repo has its initial content or does not need it. */
export const seededKey = "node/seeded";

interface SeedDeps {
  readonly repo: Pick<Repo, "identity">;
  readonly blocks: BlockService;
  readonly metadata: MetadataStore;
  /** Defined if other hosts share the metadata. */
  readonly shared: unknown;
  readonly pins: Pins;
  readonly names: Names;
}

/**
 * Runs once in the life of a repo, even if its creation was interrupted. Content that is unpinned
 * later stays unpinned. In a shared store, the directory is pinned once and published under the
 * name of each host.
 */
export async function seed({ repo, blocks, metadata, shared, pins, names }: SeedDeps): Promise<void> {
  const isSeeded = await metadata.has(seededKey);
  const isNamed = shared === undefined ? isSeeded : await metadata.has(publishedKey(repo.identity.peerId));
  if (isSeeded && isNamed) return;
  const put = (block: Block) => blocks.put([block]);
  const { cid } = await buildDirectory([], { ...defaultCid, sharded: false }, put);
  await blocks.store.sync();
  if (!isSeeded) await pins.keep([cid]);
  if (!isNamed) await names.publish(await names.key(self), `/ipfs/${cid}`, { offline: true });
  await metadata.transaction((writer) => writer.put(seededKey, new Uint8Array([1])));
}
