/** Records in a shared store which repos are being copied into it. */
import { readJsonEntry } from "../../storage/metadata/read_entry.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";

export interface Unfinished {
  /** Folder of the repo, on the machine from which it is copied. */
  readonly folder: string;
  /** Whether its blocks are copied and its metadata is being merged. */
  readonly isMerging?: boolean;
}

export const migratingPrefix = "node/migrating/";

/** Key of the record for the repo with this peer id. */
export const migratingKey = (peer: string): string => migratingPrefix + peer;

/**
 * Parses a record.
 * @throws NodeError METADATA_DAMAGED
 */
export const unfinishedMigration = (key: string, value: Uint8Array | undefined): Unfinished | undefined =>
  value && readJsonEntry(key, value, (json) => json as Unfinished);

/**
 * Returns the folders of repos that are only partly copied.
 * @throws NodeError METADATA_DAMAGED
 */
export async function unfinishedMigrations(metadata: MetadataStore): Promise<string[]> {
  const found = await Array.fromAsync(metadata.range({ prefix: migratingPrefix }));
  return found.flatMap(([key, value]) => unfinishedMigration(key, value)?.folder ?? []);
}
