/** The databases of go-ipfs and Kubo, as they are read here: never changed. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ForeignEngine } from "../../storage/repo/datastore.ts";
import { isLockedElsewhere } from "../../storage/repo/system_lock.ts";
import { isPebble, PebbleDatabase } from "../pebble/database.ts";
import { isData, readLevelDb } from "./leveldb.ts";

/** What is read of a database. */
export interface KeyValues {
  get(key: string): Promise<Uint8Array | undefined>;
  /** In the order of the keys. */
  iterator(range: {
    readonly gte: string;
    readonly lt: string;
  }): AsyncIterable<readonly [key: string, value: Uint8Array]>;
}

interface DatabaseReader {
  /** Its files; others are locks, logs for people, and settings. */
  readonly isData: (name: string) => boolean;
  /** Whether there is one, by the names of its files. */
  readonly isThere: (names: readonly string[]) => boolean;
  /**
   * Passes it to `use`. `scratch` is a folder that may be made and is gone afterwards.
   *
   * @throws DatabaseDamaged; Error with a library's reason
   */
  readonly read: <T>(folder: string, scratch: string, use: (database: KeyValues) => Promise<T>) => Promise<T>;
}

export const databases: Readonly<Record<ForeignEngine, DatabaseReader>> = {
  levelds: {
    isData,
    isThere: (names) => names.includes("CURRENT"),
    read: readLevelDb,
  },
  pebbleds: {
    isData: (name) => /^(MANIFEST-\d+|marker\..+|\d+(-\d+)?\.(log|sst))$/.test(name),
    isThere: isPebble,
    read: async (folder, _scratch, use) => use(await PebbleDatabase.open(folder)),
  },
};

/** Changes whenever somebody has opened the database; undefined when there is none. */
export async function fingerprint(engine: ForeignEngine, folder: string): Promise<string | undefined> {
  const { isData, isThere } = databases[engine];
  const all = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const names = all.filter(isData).sort();
  if (!isThere(names)) return undefined;
  const lines = names.map(async (name) => {
    const { size, mtimeMs } = await stat(join(folder, name));
    return `${name} ${size} ${mtimeMs}`;
  });
  return (await Promise.all(lines)).join("\n");
}

/** Whether another process has it open, as far as the system tells. */
export const isOpen = async (folder: string): Promise<boolean> =>
  (await isLockedElsewhere(join(folder, "LOCK"))) === true;
