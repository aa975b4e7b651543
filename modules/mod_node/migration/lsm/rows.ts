/** Blocks of rows, as LevelDB has them, and Pebble before its tables of version 5. */
import { DatabaseDamaged, Fields, KeyBytes } from "./fields.ts";

export interface Row {
  readonly key: Buffer;
  readonly value: Buffer;
}

/**
 * Each row: lengths of the part that its key shares with the previous one, of the rest and of the
 * value; then rest and value. Behind them is a list of offsets and its length, for searching.
 *
 * @throws DatabaseDamaged
 */
export function* rowsOf(block: Buffer): Generator<Row> {
  const end = block.length < 4 ? -1 : block.length - 4 - 4 * block.readUInt32LE(block.length - 4);
  if (end < 0) throw new DatabaseDamaged("a block has no end");
  const read = new Fields(block.subarray(0, end));
  const keyBytes = new KeyBytes(block);
  let key = Buffer.alloc(0);
  while (!read.atEnd) {
    const shared = read.varint();
    const rest = read.varint();
    const length = read.varint();
    if (shared > key.length) throw new DatabaseDamaged("a key is cut off");
    keyBytes.add(shared + rest);
    key = Buffer.concat([key.subarray(0, shared), read.take(rest)]);
    const value = read.take(length);
    yield { key, value: Buffer.from(value.buffer, value.byteOffset, value.length) };
  }
}
