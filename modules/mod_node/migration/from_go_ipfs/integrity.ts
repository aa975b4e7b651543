/**
 * Checks the files of a LevelDB for damage. The library neither verifies the checksums of table
 * blocks nor reports broken journal records: damage would look like missing records.
 */
import { readFile } from "node:fs/promises";
import { DatabaseDamaged, Fields, type Handle, maskedCrc } from "../lsm/fields.ts";
import { rowsOf } from "../lsm/rows.ts";

/**
 * Checks one file.
 * @throws DatabaseDamaged
 */
export async function checkFile(path: string): Promise<void> {
  if (/\.(ldb|sst)$/.test(path)) checkTable(path, await readFile(path));
  else if (/\.log$|MANIFEST-\d+$/.test(path)) checkJournal(path, await readFile(path));
}

// ----------------------------------------------------------------------------------------------------------
// tables

const footerLength = 48;
const magic = Buffer.from("57fb808b247547db", "hex");
/** Length of the compression type and checksum after each block. */
const trailerLength = 5;

/**
 * Checks a table. Its footer points to two indexes: of meta blocks, and of the blocks with keys and
 * values.
 */
function checkTable(path: string, table: Buffer): void {
  const damaged = (what: string) => new DatabaseDamaged(`${path} is damaged: ${what}`);
  const footer = table.subarray(-footerLength);
  if (footer.length < footerLength || !footer.subarray(-magic.length).equals(magic))
    throw damaged("its footer is missing");
  const read = new Fields(footer);
  let checked = 0;
  const block = ({ offset, size }: Handle): Buffer => {
    const end = offset + size;
    if (!(end + trailerLength <= table.length)) throw damaged(`a block at ${offset} is cut off`);
    checked += size + trailerLength;
    if (checked > table.length) throw damaged("its indexes point to the same block repeatedly");
    if (maskedCrc(table.subarray(offset, end + 1)) !== table.readUInt32LE(end + 1)) {
      throw damaged(`the checksum of the block at ${offset} is wrong`);
    }
    return table.subarray(offset, end);
  };
  for (let list = 0; list < 2; list += 1) {
    const handle = read.handle();
    const entries = block(handle);
    // Skips compressed blocks, which cannot be parsed here; go-ipfs does not compress by default.
    if (table[handle.offset + handle.size] !== 0) continue;
    for (const { value } of rowsOf(entries)) block(new Fields(value).handle());
  }
}

// --------------------------------------------------------------------------------------------------------
// journals

const journalBlock = 32 * 1024;
const headLength = 7;
/** A record holds a whole entry, or its first, a middle or its last fragment. */
const wholeKind = 1;
const firstKind = 2;
const lastKind = 4;

function checkJournal(path: string, journal: Buffer): void {
  for (const _ of journalEntries(path, journal));
}

/**
 * Yields the entries of a journal. Entries are split into records of checksum, length, kind and
 * data, none of which crosses a block. A crash may have cut off the last record.
 * @throws DatabaseDamaged
 */
export function* journalEntries(path: string, journal: Buffer): Generator<Buffer> {
  let pieces: Buffer[] = [];
  for (let at = 0; at + headLength <= journal.length; ) {
    const left = leftOfBlock(at);
    if (left < headLength) at += left;
    else if (isRecord(journal, at)) {
      const kind = journal[at + 6];
      if (kind === wholeKind || kind === firstKind) pieces = [];
      pieces.push(journal.subarray(at + headLength, endOf(journal, at)));
      if (kind === wholeKind || kind === lastKind) yield Buffer.concat(pieces);
      at = endOf(journal, at);
    } else if (isEnd(journal, at)) return;
    else throw new DatabaseDamaged(`${path} is damaged: the checksum of the record at ${at} is wrong`);
  }
}

const leftOfBlock = (at: number): number => journalBlock - (at % journalBlock);

const endOf = (journal: Buffer, at: number): number => at + headLength + journal.readUInt16LE(at + 4);

/** Whether a record could begin at this offset. */
function mayBegin(journal: Buffer, at: number): boolean {
  const kind = journal[at + 6] as number;
  return kind > 0 && kind <= lastKind && endOf(journal, at) - at <= leftOfBlock(at);
}

function isRecord(journal: Buffer, at: number): boolean {
  const end = endOf(journal, at);
  if (!mayBegin(journal, at) || end > journal.length) return false;
  return maskedCrc(journal.subarray(at + 6, end)) === journal.readUInt32LE(at);
}

/**
 * Whether the journal ends at this offset: the rest is zeros, or shorter than its record claims
 * with no other record in it.
 */
function isEnd(journal: Buffer, at: number): boolean {
  if (journal.subarray(at).every((byte) => byte === 0)) return true;
  if (!mayBegin(journal, at) || endOf(journal, at) <= journal.length) return false;
  for (let next = at + 1; next + headLength <= journal.length; next += 1) {
    if (isRecord(journal, next)) return false;
  }
  return true;
}
