/**
 * Reads the latest changes of a Pebble database, which are not in tables yet, from the batches in
 * its logs. Source: Pebble's `batchrepr`.
 */
import { ITEMS_PER_STEP, type Steps } from "../../util/async/steps.ts";
import { DatabaseDamaged, Fields } from "../lsm/fields.ts";
import { type Entry, entryOf, kinds, type Tombstone } from "./entry.ts";
import { type JournalOptions, journalRecords } from "./journal.ts";

/** Length of a batch header: number of the first change (8 bytes), and number of changes (4). */
const headLength = 12;
/** Kinds of changes that have a value. */
const valued: ReadonlySet<number> = new Set([kinds.set, kinds.rangeDelete, kinds.deleteSized]);

export interface Changes {
  readonly entries: Entry[];
  readonly tombstones: Tombstone[];
}

/**
 * Adds the changes in a log to `changes`. `path` is for errors.
 * @throws DatabaseDamaged
 */
export function* readLog(path: string, log: Buffer, options: JournalOptions, changes: Changes): Steps<void> {
  for (const batch of journalRecords(path, log, options)) {
    yield;
    if (batch === undefined) continue;
    if (batch.length < headLength) throw new DatabaseDamaged(`${path} is damaged: a batch is cut off`, path);
    let sequence = Number(batch.readBigUInt64LE(0));
    const read = new Fields(batch, headLength);
    for (let count = 1; !read.atEnd; count += 1) {
      if (count % ITEMS_PER_STEP === 0) yield;
      const kind = read.byte();
      const key = Buffer.from(read.text());
      const value = valued.has(kind) ? Buffer.from(read.text()) : Buffer.alloc(0);
      if (kind === kinds.logData) continue;
      if (kind === kinds.rangeDelete) changes.tombstones.push({ start: key, end: value, sequence });
      else changes.entries.push(entryOf(key, { sequence, kind }, value));
      sequence += 1;
    }
  }
}
