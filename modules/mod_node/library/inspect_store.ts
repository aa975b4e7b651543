/** Diagnoses a shared store without joining it, for `modhost doctor` and similar tools. */
import { randomUUID } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { memoryStores } from "../migration/open_stores/engines.ts";
import { secretIn, withPassword } from "../migration/open_stores/open_shared.ts";
import { migratingPrefix, unfinishedMigration } from "../migration/open_stores/unfinished.ts";
import { STORE_DEFAULTS } from "../storage/shared/defaults.ts";
import { headerKey, keysPrefix, SharedKeys } from "../storage/shared/keys.ts";
import { storeNamedBy } from "../storage/shared/pairing.ts";
import { openS3 } from "../storage/shared/s3/client.ts";
import { requireStoreSettings, type SharedStoreSettings, s3Settings } from "../storage/shared/settings.ts";
import { type InspectedDatabase, inspectDatabase } from "../storage/shared/sql/inspect.ts";

/**
 * A part of the store, or the reason why it cannot be used. The reason ends with what to do, if
 * that is known.
 */
export type Inspected<T> = { readonly found: T } | { readonly fault: string };

export interface ObjectsInspection {
  /**
   * Milliseconds by which the clock of the object store is ahead of the local clock, to a second.
   */
  readonly ahead: number;
  /** Id of the store that the objects belong to; undefined until a host has initialized it. */
  readonly store: string | undefined;
}

export interface CacheInspection {
  readonly folder: string;
  /** Current size in bytes. */
  readonly bytes: number;
  /** Maximum total size of cached objects in bytes. */
  readonly maxBytes: number;
}

export interface StoreInspection {
  readonly database: Inspected<InspectedDatabase>;
  readonly objects: Inspected<ObjectsInspection>;
  readonly cache: CacheInspection;
  /** Why the keys for names cannot be read; undefined if they can. */
  readonly keysFault: string | undefined;
  /** Number of keys that the hosts share. */
  readonly keys: number;
  /** Folders of repos whose migration to the store was not completed. */
  readonly unfinished: readonly string[];
}

/**
 * Inspects a shared store. Changes nothing, except that it writes, reads and deletes two test
 * objects, as each host does at its start. `metadata` is the folder of the repo's metadata,
 * `waitMs` the timeout for the database.
 */
export async function inspectStore(
  settings: SharedStoreSettings,
  { metadata, waitMs }: { readonly metadata: string; readonly waitMs?: number | undefined },
): Promise<StoreInspection> {
  const prefixes = [headerKey, keysPrefix, migratingPrefix];
  const [database, objects] = await Promise.all([
    attempt(async () => {
      requireStoreSettings(settings);
      return inspectDatabase(await withPassword(settings), prefixes, waitMs);
    }),
    attempt(() => inspectObjects(settings)),
  ]);
  const tables = "found" in database ? database.found.tables : undefined;
  const entries = [...(tables?.entries ?? [])];
  const folder = settings.cache_path ?? join(dirname(metadata), "shared");
  return {
    database,
    objects,
    cache: { folder, bytes: await bytesBelow(folder), maxBytes: settings.cache ?? STORE_DEFAULTS.cacheBytes },
    keys: entries.filter(([key]) => key.startsWith(keysPrefix)).length,
    keysFault: await faultOfKeys(settings, tables?.entries.get(headerKey)),
    unfinished: entries.flatMap(([key, value]) =>
      key.startsWith(migratingPrefix) ? (unfinishedMigration(key, value)?.folder ?? []) : [],
    ),
  };
}

async function attempt<T>(run: () => Promise<T>): Promise<Inspected<T>> {
  try {
    return { found: await run() };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

async function inspectObjects(settings: SharedStoreSettings): Promise<ObjectsInspection> {
  const bucket = openS3(s3Settings(settings));
  const key = `check/${randomUUID()}`;
  try {
    await bucket.check();
    const before = Date.now();
    await bucket.put(key, Buffer.from("of the doctor"));
    const modified = (await bucket.head(key))?.modified ?? before;
    await bucket.delete([key]);
    return { ahead: Math.round((modified - before) / 1000) * 1000, store: await storeNamedBy(bucket) };
  } finally {
    await bucket.close();
  }
}

/** Resolves to undefined if there is no secret, or if the secret matches the store. */
async function faultOfKeys({ keys_secret }: SharedStoreSettings, header?: Uint8Array): Promise<string | undefined> {
  if (keys_secret === undefined) return undefined;
  const { metadata } = memoryStores();
  try {
    if (header !== undefined) await metadata.transaction((writer) => writer.put(headerKey, header));
    await SharedKeys.open(metadata, await secretIn(keys_secret, "the secret for keys"));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0;
  }
  return bytes;
}
