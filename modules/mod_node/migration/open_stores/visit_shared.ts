/** Looks after a shared store without a repo: joins it as one more host, with copies in a temporary folder, and leaves again. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveStorePaths } from "../../storage/repo/datastore.ts";
import { createIdentity, readIdentity } from "../../storage/repo/identity.ts";
import type { SegmentFault } from "../../storage/shared/segments/verify.ts";
import type { SharedStoreSettings } from "../../storage/shared/settings.ts";
import { openSharedStores } from "./open_shared.ts";

export interface SharedStoreFigures {
  readonly segments: number;
  readonly blocks: number;
  /** Of the segments in the object store. */
  readonly bytes: number;
  /** Of those, what stored blocks take: the rest goes when segments are merged. */
  readonly live: number;
  /** The last commit in the log. */
  readonly position: number;
  /** Hosts that have a session, without this one. */
  readonly hosts: number;
}

export interface SharedStoreVisit {
  stat(): Promise<SharedStoreFigures>;
  /** What is missing or damaged; `read` compares every block with its hash. */
  verify(options?: { readonly read?: boolean; readonly signal?: AbortSignal }): AsyncIterable<SegmentFault>;
  /** Keys of the objects that hosts left behind that ended before they told of them; `remove` deletes them. */
  orphans(options?: { readonly remove?: boolean; readonly signal?: AbortSignal }): Promise<readonly string[]>;
}

export interface VisitOptions {
  readonly onNotice?: ((sentence: string) => void) | undefined;
  /** Where the temporary folder is made: it takes some 100 bytes for each block of the store. */
  readonly temporary?: string | undefined;
}

/** Hosts may run meanwhile. @throws NodeError STORE_UNAVAILABLE, and what says that the settings are wrong */
export async function visitSharedStore<T>(
  settings: SharedStoreSettings,
  use: (visit: SharedStoreVisit) => Promise<T>,
  { onNotice, temporary = tmpdir() }: VisitOptions = {},
): Promise<T> {
  const folder = await mkdtemp(join(temporary, "modhost-store-"));
  try {
    const identity = readIdentity(await createIdentity());
    const stores = resolveStorePaths(folder, { kind: "segments", blocks: "segments", metadata: "metadata" });
    // Nothing is kept that the folder does not go with, and no key is asked for.
    const own = { ...settings, cache_path: folder, keys_secret: undefined };
    const opened = await openSharedStores({ stores, identity }, own, { onNotice });
    const { blocks, shared } = opened;
    try {
      return await use({
        async stat() {
          const { segments, bytes, live } = await blocks.upkeep.figures();
          const { blocks: count } = await blocks.stat();
          const hosts = (await shared.sessions()).filter((session) => session !== shared.session).length;
          return { segments, blocks: count, bytes, live, position: shared.applied, hosts };
        },
        verify: (options) => blocks.upkeep.verify(options),
        orphans: ({ remove = false, signal } = {}) =>
          remove ? blocks.upkeep.deleteOrphans(signal) : blocks.upkeep.orphans(signal),
      });
    } finally {
      for (const store of [opened.blocks, opened.metadata, opened.hostMetadata]) await store?.close();
      await opened.close?.();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
