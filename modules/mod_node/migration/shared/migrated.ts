/**
 * Describes the result of a migration to or from a shared store, and checks that it is complete.
 */

import type { CID } from "multiformats/cid";
import type { BlockStore } from "../../storage/blockstore/store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import { counted } from "../../util/counted.ts";
import { failure } from "../../util/errors.ts";
import { type CopyOptions, type CopyProgress, missingBlocks } from "../open_stores/copy.ts";
import { type Merged, missingEntries } from "./merge_metadata.ts";

export interface Migrated extends CopyProgress, Merged {
  /** Number of keys for names that both have now. */
  readonly keys: number;
  /** Root of the files that were copied; undefined if there are none. */
  readonly files: CID | undefined;
}

interface RequireBlocksOptions extends Pick<CopyOptions, "onProgress" | "signal"> {
  /** Approximate number of blocks. */
  readonly total: number;
  /** Whether a block could not be copied; the user was notified of it. */
  readonly isLost?: (cid: CID) => boolean;
  /** Whether to read every block and compare it with its hash. */
  readonly verify: boolean;
}

const remedy = "start again, unless others have removed that meanwhile";

/**
 * Checks that blocks were copied.
 * @throws NodeError if some are missing or damaged
 */
export async function requireBlocks(
  listed: AsyncIterable<CID>,
  to: BlockStore,
  { isLost = () => false, verify, ...options }: RequireBlocksOptions,
): Promise<void> {
  let missing = 0;
  let first: CID | undefined;
  for await (const cid of missingBlocks(listed, to, { ...options, read: verify })) {
    if (isLost(cid)) continue;
    first ??= cid;
    missing += 1;
  }
  if (missing > 0)
    throw failure("MIGRATION_INCOMPLETE", {
      reason: `${counted(missing, "block was", "blocks were")} not copied, ${first} among them: ${remedy}`,
    });
}

/**
 * Checks that pins and published names were copied.
 * @throws NodeError if some are missing
 */
export async function requireEntries(from: MetadataStore, to: MetadataStore): Promise<void> {
  const [entry, ...more] = await missingEntries(from, to);
  if (entry !== undefined)
    throw failure("MIGRATION_INCOMPLETE", {
      reason: `${counted(more.length + 1, "pin or name was", "pins or names were")} not copied, ${entry} among them: ${remedy}`,
    });
}
