/**
 * Reads column blocks, as in Pebble tables since version 5.
 *
 * Source: the package documentation of Pebble's `sstable/colblk`. A block begins with a header of
 * its own kind. Version (1 byte), number of columns (2) and number of rows (4) follow; then type
 * (1) and offset (4) of each column; then the columns. All numbers are little-endian. Offsets and
 * alignment count from the beginning of the block.
 */
import { DatabaseDamaged, KeyBytes } from "../lsm/fields.ts";

const types = { bool: 1, uint: 2, bytes: 3, prefixBytes: 4 } as const;
const VERSION = 1;
const headLength = 7;
const columnHeadLength = 5;

/** Returns the value of a column in a row. */
type Column<T> = (row: number) => T;

/**
 * Reads the columns of one block. Every method throws DatabaseDamaged, or RangeError past its end.
 */
export class Columns {
  readonly #block: Buffer;
  readonly #head: number;
  readonly rows: number;

  /** `ownHead` is the length of the header of the block's own kind. */
  constructor(block: Buffer, ownHead = 0) {
    if (block[ownHead] !== VERSION) throw new DatabaseDamaged("a column block has an unsupported version");
    this.#block = block;
    this.#head = ownHead;
    this.rows = bounded(block.readUInt32LE(ownHead + 3), block);
  }

  uints(column: number, rows = this.rows): Column<bigint> {
    return this.#uintsAt(this.#start(column, types.uint), rows).value;
  }

  /** Reads numbers that are known to be small: offsets, lengths, indexes. */
  numbers(column: number, rows = this.rows): Column<number> {
    const value = this.uints(column, rows);
    return (row) => Number(value(row));
  }

  bytes(column: number, rows = this.rows): Column<Buffer> {
    return this.#bytesAt(this.#start(column, types.bytes), rows).value;
  }

  bits(column: number): Column<boolean> {
    const start = this.#start(column, types.bool);
    if (this.#block[start] === 1) return () => false;
    const words = align(start + 1, 8);
    return (row) => (this.#block.readUInt8(words + (row >> 3)) & (1 << (row & 7))) !== 0;
  }

  /**
   * Reads sorted keys: a prefix of all keys, one prefix per bundle of keys, and the rest of each
   * key. An empty rest means the same key as the one before it in the bundle.
   */
  prefixBytes(column: number): Column<Buffer> {
    const start = this.#start(column, types.prefixBytes);
    const shift = this.#block.readUInt8(start);
    if (shift > MAX_BUNDLE_SHIFT) throw new DatabaseDamaged("a block has larger bundles of keys than Pebble makes");
    const keyBytes = new KeyBytes(this.#block);
    const size = 2 ** shift;
    const bundles = Math.ceil(this.rows / size);
    const { value: slice, begin } = this.#bytesAt(start + 1, this.rows + bundles);
    const prefix = begin();
    return (row) => {
      const bundle = Math.floor(row / size) * (size + 1);
      let at = bundle + 1 + (row % size);
      while (at > bundle + 1 && slice(at).length === 0) at -= 1;
      const parts = [prefix, slice(bundle), slice(at)];
      for (const part of parts) keyBytes.add(part.length);
      return Buffer.concat(parts);
    };
  }

  #start(column: number, type: number): number {
    const head = this.#head + headLength + column * columnHeadLength;
    if (column >= this.#block.readUInt16LE(this.#head + 1) || this.#block[head] !== type) {
      throw new DatabaseDamaged("a block has unexpected columns");
    }
    return this.#block.readUInt32LE(head + 1);
  }

  /**
   * Reads a column of numbers. It begins with a byte for their width, whose highest bit says that a
   * base follows; then come the numbers, aligned to their width.
   */
  #uintsAt(start: number, rows: number): { value: Column<bigint>; end: number } {
    if (rows === 0) return { value: () => 0n, end: start };
    const encoding = this.#block.readUInt8(start);
    const hasBase = encoding >= 0x80;
    const width = encoding & 0x7f;
    if (![0, 1, 2, 4, 8].includes(width)) throw new DatabaseDamaged("a column has numbers of an unsupported width");
    const base = hasBase ? this.#block.readBigUInt64LE(start + 1) : 0n;
    const first = align(start + 1 + (hasBase ? 8 : 0), width || 1);
    const end = first + rows * width;
    if (end > this.#block.length) throw new DatabaseDamaged("a column is cut off");
    if (width === 0) return { value: (row) => (row < rows ? base : noRow()), end };
    if (width === 8) return { value: (row) => this.#block.readBigUInt64LE(first + row * 8), end };
    return { value: (row) => base + BigInt(this.#block.readUIntLE(first + row * width, width)), end };
  }

  /**
   * Reads a column of byte slices: the offsets of all slices and of their end, then the slices.
   * `begin` returns the bytes before the first slice.
   */
  #bytesAt(start: number, count: number): { value: Column<Buffer>; begin: () => Buffer } {
    const { value: offset, end } = this.#uintsAt(start, count + 1);
    const slice = (from: number, to: number): Buffer => {
      if (from > to || end + to > this.#block.length) throw new DatabaseDamaged("a value is cut off");
      return this.#block.subarray(end + from, end + to);
    };
    return {
      value: (row) => slice(Number(offset(row)), Number(offset(row + 1))),
      begin: () => slice(0, Number(offset(0))),
    };
  }
}

/** Bundles of up to 2^10 keys are supported; Kubo writes bundles of 16. */
const MAX_BUNDLE_SHIFT = 10;

/**
 * Checks a row count against the size of the block: each row takes at least one byte.
 * @throws DatabaseDamaged
 */
export function bounded(rows: number, block: Buffer): number {
  if (rows > block.length) throw new DatabaseDamaged("a block has more rows than its size allows");
  return rows;
}

function noRow(): never {
  throw new DatabaseDamaged("a block has fewer rows than it says");
}

const align = (at: number, to: number): number => Math.ceil(at / to) * to;
