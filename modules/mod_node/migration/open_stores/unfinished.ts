/** Notes in a shared store of the repos that are being copied into it. */
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

export const unfinishedMigration = (value: Uint8Array | undefined): Unfinished | undefined =>
  value && (JSON.parse(Buffer.from(value).toString()) as Unfinished);

/** Folders of repos of which only a part was copied so far. */
export async function unfinishedMigrations(metadata: MetadataStore): Promise<string[]> {
  const found = await Array.fromAsync(metadata.range({ prefix: migratingPrefix }));
  return found.flatMap(([, value]) => unfinishedMigration(value)?.folder ?? []);
}
