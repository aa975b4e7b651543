/** Notes in a shared store of the repos that are being copied into it. */
import { readJsonEntry } from "../../storage/metadata/read_entry.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";

export interface Unfinished {
  /** Of the repo, on the machine from which it is copied. */
  readonly folder: string;
  /** Its blocks are there. */
  readonly isMerging?: boolean;
}

export const migratingPrefix = "node/migrating/";

/** Of the repo with this peer id. */
export const migratingKey = (peer: string): string => migratingPrefix + peer;

/** @throws NodeError METADATA_DAMAGED */
export const unfinishedMigration = (key: string, value: Uint8Array | undefined): Unfinished | undefined =>
  value && readJsonEntry(key, value, (json) => json as Unfinished);

/** Folders of repos of which only a part was copied so far. @throws NodeError METADATA_DAMAGED */
export async function unfinishedMigrations(metadata: MetadataStore): Promise<string[]> {
  const found = await Array.fromAsync(metadata.range({ prefix: migratingPrefix }));
  return found.flatMap(([key, value]) => unfinishedMigration(key, value)?.folder ?? []);
}
