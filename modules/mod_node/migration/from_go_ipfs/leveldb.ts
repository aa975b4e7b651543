/** Reads the LevelDB of go-ipfs. It opens a copy, so the database stays unchanged. */
import { constants } from "node:fs";
import { copyFile, link, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ClassicLevel } from "classic-level";
import { checkFile } from "./integrity.ts";
import { tablesOf } from "./manifest.ts";

/** Keys are text, values are bytes. */
export type LevelDb = ClassicLevel<string, Uint8Array>;

/**
 * Whether a file belongs to the data. Other files are logs for people, locks, and leftovers of a
 * crash.
 */
export const isData = (name: string): boolean => /^(CURRENT|MANIFEST-\d+|\d+\.(log|ldb|sst))$/.test(name);
/** Tables are immutable. */
const isTable = (name: string) => /\.(ldb|sst)$/.test(name);

/** Returns the data files without tables that an interrupted compaction has left behind. */
async function filesInUse(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter(isData).sort();
  if (!names.includes("CURRENT")) return names;
  const manifest = join(folder, (await readFile(join(folder, "CURRENT"), "utf8")).trim());
  const tables = tablesOf(manifest, await readFile(manifest));
  return names.filter((name) => !isTable(name) || tables.has(Number.parseInt(name, 10)));
}

/**
 * Passes a copy of the database to `use`. It may create the folder `scratch`, and removes it at the
 * end. In the same file system, the copy takes almost no space.
 * @throws DatabaseDamaged; Error with the library's reason
 */
export async function readLevelDb<T>(
  folder: string,
  scratch: string,
  use: (levelDb: LevelDb) => Promise<T>,
): Promise<T> {
  const clear = () => rm(scratch, { recursive: true, force: true });
  await clear();
  try {
    await mkdir(scratch, { recursive: true, mode: 0o700 });
    for (const name of await filesInUse(folder)) {
      await checkFile(join(folder, name));
      await (isTable(name) ? linkOrCopy : copyFile)(join(folder, name), join(scratch, name));
    }
    const levelDb = await openLevelDb(scratch, { createIfMissing: false });
    try {
      return await use(levelDb);
    } finally {
      await levelDb.close();
    }
  } finally {
    await clear();
  }
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => copyFile(from, to, constants.COPYFILE_FICLONE));
}

/**
 * Opens a LevelDB.
 * @throws Error with the library's reason
 */
export async function openLevelDb(folder: string, { createIfMissing = true } = {}): Promise<LevelDb> {
  // Loaded on demand, because few repos have such a database.
  const { ClassicLevel } = await import("classic-level");
  const levelDb: LevelDb = new ClassicLevel(folder, {
    keyEncoding: "utf8",
    valueEncoding: "view",
    compression: false,
    createIfMissing,
  });
  try {
    await levelDb.open();
  } catch (error) {
    throw (error as Error).cause ?? error;
  }
  return levelDb;
}
