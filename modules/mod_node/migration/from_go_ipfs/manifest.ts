/**
 * Which tables of a LevelDB are part of it: a crash leaves others behind, some of them half
 * written.
 */
import { DatabaseDamaged, Fields } from "../lsm/fields.ts";
import { journalEntries } from "./integrity.ts";

/** What an entry of a manifest tells, by the number before it (LevelDB's version edits). */
const readers: Readonly<Record<number, (read: Fields, tables: Set<number>) => void>> = {
  // The order of keys.
  1: (read) => void read.text(),
  // Numbers of the journal, the next file, the last change.
  2: (read) => void read.varint(),
  3: (read) => void read.varint(),
  4: (read) => void read.varint(),
  // A level, and the key at which its next compaction begins.
  5(read) {
    read.varint();
    read.text();
  },
  // A level, and a table that is gone.
  6(read, tables) {
    read.varint();
    tables.delete(read.varint());
  },
  // A level, a table, its size, its first and last key.
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
 * Numbers of the tables that `manifest`, the bytes of the file at `path`, names. @throws
 * DatabaseDamaged
 */
export function tablesOf(path: string, manifest: Buffer): ReadonlySet<number> {
  const tables = new Set<number>();
  for (const entry of journalEntries(path, manifest)) {
    const read = new Fields(entry);
    while (read.at < entry.length) {
      const tag = read.varint();
      const reader = readers[tag];
      if (reader === undefined)
        throw new DatabaseDamaged(`${path} is damaged: nothing is known of entries of kind ${tag}`);
      reader(read, tables);
    }
  }
  return tables;
}
