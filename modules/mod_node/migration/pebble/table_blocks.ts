/** Parses the blocks of a Pebble table. */
import { zstdDecompressSync } from "node:zlib";
import { DatabaseDamaged, Fields, type Handle } from "../lsm/fields.ts";
import { rowsOf } from "../lsm/rows.ts";
import { bounded, Columns } from "./columns.ts";
import { type Entry, entryOf, kinds, type Tombstone, trailerOf } from "./entry.ts";
import { expandSnappy } from "./snappy.ts";

/**
 * Maximum size of a block. Only larger values would need larger blocks, and Kubo has none of this
 * size. Compressed blocks declare their size.
 */
export const MAX_BLOCK = 2 ** 30;
const MAX_EXPANDED = 2 ** 27;
const keyTrailerLength = 8;
/**
 * The first versions whose values begin with a prefix byte, which have column blocks, and whose
 * block lists have columns.
 */
const withPrefixes = 3;
const withColumns = 5;
const withColumnarMeta = 6;

export interface IndexEntry {
  /** Upper bound of the keys in the block. */
  readonly last: Buffer;
  readonly handle: Handle;
}

/**
 * Parser for one version of tables. All methods throw DatabaseDamaged, or RangeError for offsets
 * that point outside a block.
 */
export interface BlockFormat {
  index(block: Buffer): IndexEntry[];
  entries(block: Buffer): Entry[];
  tombstones(block: Buffer): Tombstone[];
  /** Yields names and values: of meta blocks, and up to version 6 of properties. */
  meta(block: Buffer): Iterable<[string, Buffer]>;
}

/** Returns the parser for a version; 0 means a table of RocksDB. */
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

/**
 * Decompresses a block; `kind` is the byte behind it.
 * @throws DatabaseDamaged
 */
export function expand(kind: number, block: Buffer): Buffer {
  if (kind === uncompressed) return block;
  if (kind === snappy) return expandSnappy(block);
  if (kind !== zstd) throw new DatabaseDamaged(`a block has the unsupported compression ${kind}`);
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

/** Bits of a value's first byte that say that the value is stored elsewhere. */
const ELSEWHERE = 0xc0;

function inlineValue(value: Buffer): Buffer {
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
    return entryOf(user, change, hasPrefix ? inlineValue(value) : value);
  });
}

function rowTombstones(block: Buffer): Tombstone[] {
  return [...rowsOf(block)].map(({ key, value }) => {
    const { user, trailer } = splitKey(key);
    return { start: user, end: value, sequence: trailerOf(trailer).sequence };
  });
}

/** Length of the field before the header: the length of the longest key. */
const dataHead = 4;

/**
 * Reads a data block. Its columns are: both parts of the keys, trailers, a search bitmap, values,
 * whether the value is elsewhere, and whether a later change replaces this one.
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
 * Reads a block of range tombstones. The number of bounds is before the header. The columns are the
 * bounds, the index of the first change of each bound, and the trailers of the changes.
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
