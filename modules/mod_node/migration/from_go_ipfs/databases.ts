/** Finds and reads the databases of go-ipfs and Kubo, and never changes them. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ForeignEngine } from "../../storage/repo/datastore.ts";
import { isLockedElsewhere } from "../../storage/repo/system_lock.ts";
import { isPebble, PebbleDatabase } from "../pebble/database.ts";
import { isData, readLevelDb } from "./leveldb.ts";

/** The read operations that an import needs. */
export interface KeyValues {
  get(key: string): Promise<Uint8Array | undefined>;
  /** Yields entries in the order of their keys. */
  iterator(range: {
    readonly gte: string;
    readonly lt: string;
  }): AsyncIterable<readonly [key: string, value: Uint8Array]>;
}

interface DatabaseReader {
  /** Whether a file belongs to the data. Other files are locks, logs for people, and settings. */
  readonly isData: (name: string) => boolean;
  /** Whether a folder with files of these names is a database of this engine. */
  readonly isThere: (names: readonly string[]) => boolean;
  /**
   * Opens the database and passes it to `use`. It may create the folder `scratch`, and removes it
   * at the end.
   * @throws DatabaseDamaged; Error with the reason of the library
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

/**
 * Returns a text that changes whenever somebody has opened the database; undefined if there is
 * none.
 */
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

/** Whether another process has the database open, as far as the system reports it. */
export const isOpen = async (folder: string): Promise<boolean> =>
  (await isLockedElsewhere(join(folder, "LOCK"))) === true;
