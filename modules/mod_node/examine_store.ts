/** What can be told of a shared store that this host does not join: for whoever looks for what is wrong. */
import { randomUUID } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { memoryStores } from "./migration/open_stores/engines.ts";
import { secretIn, withPassword } from "./migration/open_stores/open_shared.ts";
import { migratingPrefix, unfinishedMigration } from "./migration/open_stores/unfinished.ts";
import { STORE_DEFAULTS } from "./storage/shared/defaults.ts";
import { headerKey, keysPrefix, SharedKeys } from "./storage/shared/keys.ts";
import { storeNamedBy } from "./storage/shared/pairing.ts";
import { openS3 } from "./storage/shared/s3/client.ts";
import { requireStoreSettings, type SharedStoreSettings, s3Settings } from "./storage/shared/settings.ts";
import { type DatabaseExamined, examineDatabase } from "./storage/shared/sql/examine.ts";

/** A part of the store, or why it cannot be used: in words that end with what to do, where that is known. */
export type Examined<T> = { readonly found: T } | { readonly fault: string };

export interface ObjectsExamined {
  /** Milliseconds that the clock of the object store is ahead of the one here, to a second. */
  readonly ahead: number;
  /** The store whose objects these are; undefined while no host has begun. */
  readonly store: string | undefined;
}

export interface CacheExamined {
  readonly folder: string;
  /** Bytes that it has now. */
  readonly bytes: number;
  /** Bytes of objects that it may have. */
  readonly most: number;
}

export interface StoreExamined {
  readonly database: Examined<DatabaseExamined>;
  readonly objects: Examined<ObjectsExamined>;
  readonly cache: CacheExamined;
  /** Why keys for names cannot be read. */
  readonly keysFault: string | undefined;
  /** Keys that hosts have in common. */
  readonly keys: number;
  /** Folders of repos of which only a part was copied there. */
  readonly unfinished: readonly string[];
}

/**
 * Reads, and changes nothing but for two objects that it writes, looks at and deletes, as each host does at its start. `metadata` is the
 * folder of the metadata of the repo, `waitMs` how long the database is waited for.
 */
export async function examineStore(
  settings: SharedStoreSettings,
  { metadata, waitMs }: { readonly metadata: string; readonly waitMs?: number | undefined },
): Promise<StoreExamined> {
  const prefixes = [headerKey, keysPrefix, migratingPrefix];
  const [database, objects] = await Promise.all([
    attempt(async () => {
      requireStoreSettings(settings);
      return examineDatabase(await withPassword(settings), prefixes, waitMs);
    }),
    attempt(() => examineObjects(settings)),
  ]);
  const tables = "found" in database ? database.found.tables : undefined;
  const entries = [...(tables?.entries ?? [])];
  const folder = settings.cache_path ?? join(dirname(metadata), "shared");
  return {
    database,
    objects,
    cache: { folder, bytes: await bytesBelow(folder), most: settings.cache ?? STORE_DEFAULTS.cacheBytes },
    keys: entries.filter(([key]) => key.startsWith(keysPrefix)).length,
    keysFault: await faultOfKeys(settings, tables?.entries.get(headerKey)),
    unfinished: entries.flatMap(([key, value]) =>
      key.startsWith(migratingPrefix) ? (unfinishedMigration(key, value)?.folder ?? []) : [],
    ),
  };
}

async function attempt<T>(run: () => Promise<T>): Promise<Examined<T>> {
  try {
    return { found: await run() };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

async function examineObjects(settings: SharedStoreSettings): Promise<ObjectsExamined> {
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

/** Undefined when there is no secret, or it is that of the store. */
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
