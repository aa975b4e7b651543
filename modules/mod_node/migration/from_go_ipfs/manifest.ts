/**
 * Finds out which tables are part of a LevelDB: a crash leaves others behind, some of them
 * incomplete.
 */
import { DatabaseDamaged, Fields } from "../lsm/fields.ts";
import { journalEntries } from "./integrity.ts";

/** Readers of LevelDB's version edits, by the tag before each. */
const readers: Readonly<Record<number, (read: Fields, tables: Set<number>) => void>> = {
  // Comparator name.
  1: (read) => void read.text(),
  // Number of the journal, next file number, last sequence number.
  2: (read) => void read.varint(),
  3: (read) => void read.varint(),
  4: (read) => void read.varint(),
  // Level, and the key at which its next compaction begins.
  5(read) {
    read.varint();
    read.text();
  },
  // Level and number of a deleted table.
  6(read, tables) {
    read.varint();
    tables.delete(read.varint());
  },
  // Level, number, size, first key and last key of a new table.
  7(read, tables) {
    read.varint();
    tables.add(read.varint());
    read.varint();
    read.text();
    read.text();
  },
  9: (read) => void read.varint(),
};

/**
 * Returns the numbers of the tables that a manifest lists. `path` is for errors.
 * @throws DatabaseDamaged
 */
export function tablesOf(path: string, manifest: Buffer): ReadonlySet<number> {
  const tables = new Set<number>();
  for (const entry of journalEntries(path, manifest)) {
    const read = new Fields(entry);
    while (read.at < entry.length) {
      const tag = read.varint();
      const reader = readers[tag];
      if (reader === undefined)
        throw new DatabaseDamaged(`${path} is damaged: it has entries of the unknown kind ${tag}`);
      reader(read, tables);
    }
  }
  return tables;
}
