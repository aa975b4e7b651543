/** What is in a block of a Pebble's table, once it is read. */
import { zstdDecompressSync } from "node:zlib";
import { DatabaseDamaged, Fields, type Handle } from "../lsm/fields.ts";
import { rowsOf } from "../lsm/rows.ts";
import { bounded, Columns } from "./columns.ts";
import { type Entry, entryOf, kinds, type Tombstone, trailerOf } from "./entry.ts";
import { expandSnappy } from "./snappy.ts";

/**
 * Larger blocks are made only for larger values; Kubo has none of this size. Compressed ones say
 * how large they are.
 */
export const MAX_BLOCK = 2 ** 30;
const MAX_EXPANDED = 2 ** 27;
const keyTrailerLength = 8;
/**
 * The first versions whose values begin with a byte, that have columns, and whose lists of blocks
 * have columns.
 */
const withPrefixes = 3;
const withColumns = 5;
const withColumnarMeta = 6;

export interface IndexEntry {
  /** No key in the block comes behind it. */
  readonly last: Buffer;
  readonly handle: Handle;
}

/**
 * How a version of tables has its blocks. All throw DatabaseDamaged, or RangeError for offsets that
 * lead out of a block.
 */
export interface BlockFormat {
  index(block: Buffer): IndexEntry[];
  entries(block: Buffer): Entry[];
  tombstones(block: Buffer): Tombstone[];
  /** Names and values: of blocks, and up to version 6 of properties. */
  meta(block: Buffer): Iterable<[string, Buffer]>;
}

/** `version` is 0 for tables of RocksDB. */
export function blockFormat(version: number): BlockFormat {
  const hasColumns = version >= withColumns;
  return {
    index: hasColumns ? columnIndex : rowIndex,
    entries: hasColumns ? columnEntries : (block) => rowEntries(block, version),
    tombstones: hasColumns ? columnTombstones : rowTombstones,
    meta: version >= withColumnarMeta ? columnPairs : rowPairs,
  };
}

function rowIndex(block: Buffer): IndexEntry[] {
  return Array.from(rowsOf(block), ({ key, value }) => ({
    last: splitKey(key).user,
    handle: new Fields(value).handle(),
  }));
}

function columnIndex(block: Buffer): IndexEntry[] {
  const columns = new Columns(block);
  const last = columns.bytes(0);
  const offset = columns.numbers(1);
  const size = columns.numbers(2);
  return Array.from({ length: columns.rows }, (_, row) => ({
    last: last(row),
    handle: { offset: offset(row), size: size(row) },
  }));
}

const uncompressed = 0;
const snappy = 1;
const zstd = 7;

/** `kind` of compression is behind the block. @throws DatabaseDamaged */
export function expand(kind: number, block: Buffer): Buffer {
  if (kind === uncompressed) return block;
  if (kind === snappy) return expandSnappy(block);
  if (kind !== zstd) throw new DatabaseDamaged(`a block is compressed in a way that is not read here (${kind})`);
  const read = new Fields(block);
  const length = read.varint();
  if (length > MAX_EXPANDED) throw new DatabaseDamaged("a compressed block is damaged");
  try {
    const expanded = zstdDecompressSync(block.subarray(read.at), { maxOutputLength: Math.max(1, length) });
    if (expanded.length === length) return expanded;
  } catch {}
  throw new DatabaseDamaged("a compressed block is damaged");
}

function* columnPairs(block: Buffer): Generator<[string, Buffer]> {
  const columns = new Columns(block);
  const key = columns.bytes(0);
  const value = columns.bytes(1);
  for (let row = 0; row < columns.rows; row += 1) yield [key(row).toString(), value(row)];
}

export function* rowPairs(block: Buffer): Generator<[string, Buffer]> {
  for (const { key, value } of rowsOf(block)) yield [key.toString(), value];
}

/** Which of the first bits of a value's first byte say that it is elsewhere. */
const ELSEWHERE = 0xc0;

function inPlace(value: Buffer): Buffer {
  if (value.length === 0) throw new DatabaseDamaged("a value is cut off");
  if ((value.readUInt8(0) & ELSEWHERE) !== 0) throw elsewhere();
  return value.subarray(1);
}

const elsewhere = () => new DatabaseDamaged("it has values in blocks or files of their own, which Kubo does not write");

function splitKey(key: Buffer): { user: Buffer; trailer: bigint } {
  const at = key.length - keyTrailerLength;
  if (at < 0) throw new DatabaseDamaged("a key is cut off");
  return { user: key.subarray(0, at), trailer: key.readBigUInt64LE(at) };
}

function rowEntries(block: Buffer, version: number): Entry[] {
  return [...rowsOf(block)].map(({ key, value }) => {
    const { user, trailer } = splitKey(key);
    const change = trailerOf(trailer);
    const hasPrefix = version >= withPrefixes && change.kind === kinds.set;
    return entryOf(user, change, hasPrefix ? inPlace(value) : value);
  });
}

function rowTombstones(block: Buffer): Tombstone[] {
  return [...rowsOf(block)].map(({ key, value }) => {
    const { user, trailer } = splitKey(key);
    return { start: user, end: value, sequence: trailerOf(trailer).sequence };
  });
}

/** Before the header is the length of the longest key. */
const dataHead = 4;

/**
 * Columns: keys in two parts, trailers, a bit for searching, values, whether they are elsewhere,
 * whether later ones count.
 */
function columnEntries(block: Buffer): Entry[] {
  const columns = new Columns(block, dataHead);
  const prefix = columns.prefixBytes(0);
  const suffix = columns.bytes(1);
  const trailer = columns.uints(2);
  const value = columns.bytes(4);
  const isElsewhere = columns.bits(5);
  return Array.from({ length: columns.rows }, (_, row) => {
    if (isElsewhere(row)) throw elsewhere();
    const rest = suffix(row);
    const key = rest.length === 0 ? prefix(row) : Buffer.concat([prefix(row), rest]);
    return entryOf(key, trailerOf(trailer(row)), value(row));
  });
}

/**
 * Before the header is the number of bounds. Columns: bounds, of each the first of its changes;
 * trailers of the changes.
 */
function columnTombstones(block: Buffer): Tombstone[] {
  const bounds = bounded(block.readUInt32LE(0), block);
  const columns = new Columns(block, dataHead);
  const bound = columns.bytes(0, bounds);
  const first = columns.numbers(1, bounds);
  const trailer = columns.uints(2);
  const found: Tombstone[] = [];
  for (let at = 0; at + 1 < bounds; at += 1) {
    for (let row = first(at); row < first(at + 1); row += 1) {
      found.push({ start: bound(at), end: bound(at + 1), sequence: trailerOf(trailer(row)).sequence });
    }
  }
  return found;
}
