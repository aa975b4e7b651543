/**
 * Checks that the files of a LevelDB are undamaged. The library does not check the checksums of table blocks and skips
 * broken journal records: damage would look like missing records.
 */
import { readFile } from "node:fs/promises";

export class LevelDbDamaged extends Error {
  override readonly name = "LevelDamaged";
}

const castagnoli = 0x82f63b78;
const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ castagnoli : value >>> 1;
  return value;
});

/** CRC-32C as LevelDB stores it: rotated, plus a constant, since a checksum of checksums says little. */
export function maskedCrc(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) crc = (crc >>> 8) ^ (crcTable[(crc ^ byte) & 0xff] as number);
  const whole = ~crc >>> 0;
  return (((whole >>> 15) | (whole << 17)) + 0xa282ead8) >>> 0;
}

/** @throws LevelDbDamaged */
export async function checkFile(path: string): Promise<void> {
  if (/\.(ldb|sst)$/.test(path)) checkTable(path, await readFile(path));
  else if (/\.log$|MANIFEST-\d+$/.test(path)) checkJournal(path, await readFile(path));
}

// ---------------------------------------------------------------------------------------------------------- tables

const footerLength = 48;
const magic = Buffer.from("57fb808b247547db", "hex");
/** Kind of compression and checksum, after each block. */
const trailerLength = 5;

interface Handle {
  readonly offset: number;
  readonly size: number;
}

/** The footer leads to two indexes: of meta blocks, and of the blocks with keys and values. */
function checkTable(path: string, table: Buffer): void {
  const damaged = (what: string) => new LevelDbDamaged(`${path} is damaged: ${what}`);
  const footer = table.subarray(-footerLength);
  if (footer.length < footerLength || !footer.subarray(-magic.length).equals(magic)) throw damaged("it has no end");
  const read = new Fields(footer);
  const block = ({ offset, size }: Handle): Buffer => {
    const end = offset + size;
    if (end + trailerLength > table.length) throw damaged(`a block at ${offset} is cut off`);
    if (maskedCrc(table.subarray(offset, end + 1)) !== table.readUInt32LE(end + 1)) {
      throw damaged(`the checksum of the block at ${offset} is wrong`);
    }
    return table.subarray(offset, end);
  };
  for (let list = 0; list < 2; list += 1) {
    const handle = read.handle();
    const entries = block(handle);
    // Compressed blocks cannot be inspected; go-ipfs compresses nothing by default.
    if (table[handle.offset + handle.size] !== 0) continue;
    for (const listed of handlesIn(entries)) block(listed);
  }
}

/** Entries: lengths of the part shared with the previous key, of the rest and of the value; then rest and value. */
function* handlesIn(index: Buffer): Generator<Handle> {
  const restarts = index.readUInt32LE(index.length - 4);
  const end = index.length - 4 - 4 * restarts;
  const read = new Fields(index);
  while (read.at < end) {
    read.varint();
    const rest = read.varint();
    const length = read.varint();
    read.at += rest;
    const next = read.at + length;
    yield read.handle();
    read.at = next;
  }
}

export class Fields {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Bytes with their length before them. */
  skipText(): void {
    const length = this.varint();
    this.at += length;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#bytes[this.at++];
      if (byte === undefined) throw new LevelDbDamaged("a list is cut off");
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }

  handle(): Handle {
    return { offset: this.varint(), size: this.varint() };
  }
}

// -------------------------------------------------------------------------------------------------------- journals

const journalBlock = 32 * 1024;
const headLength = 7;
/** A record is a whole entry, or its first, a middle or its last piece. */
const [wholeKind, firstKind, lastKind] = [1, 2, 4];

function checkJournal(path: string, journal: Buffer): void {
  for (const _ of journalEntries(path, journal));
}

/**
 * Entries are cut into records of checksum, length, kind and data, none of which crosses a block. The last one may be cut
 * off, by a crash.
 *
 * @throws LevelDbDamaged
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
    else throw new LevelDbDamaged(`${path} is damaged: the checksum of the record at ${at} is wrong`);
  }
}

const leftOfBlock = (at: number): number => journalBlock - (at % journalBlock);

const endOf = (journal: Buffer, at: number): number => at + headLength + journal.readUInt16LE(at + 4);

/** Whether a record could begin here. */
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
 * Whether nothing was written from here on: there are only zeros, or less than the record says and no other record
 * after it.
 */
function isEnd(journal: Buffer, at: number): boolean {
  if (journal.subarray(at).every((byte) => byte === 0)) return true;
  if (!mayBegin(journal, at) || endOf(journal, at) <= journal.length) return false;
  for (let next = at + 1; next + headLength <= journal.length; next += 1) {
    if (isRecord(journal, next)) return false;
  }
  return true;
}
