/** Reads row blocks of LevelDB, and of Pebble tables before version 5. */
import { DatabaseDamaged, Fields, KeyBytes } from "./fields.ts";

export interface Row {
  readonly key: Buffer;
  readonly value: Buffer;
}

/**
 * Yields the rows of a block. Each row has three lengths: of the key prefix that it shares with the
 * previous row, of the rest of the key, and of the value. Rest and value follow. The block ends
 * with a list of restart offsets and its length.
 * @throws DatabaseDamaged
 */
export function* rowsOf(block: Buffer): Generator<Row> {
  const end = block.length < 4 ? -1 : block.length - 4 - 4 * block.readUInt32LE(block.length - 4);
  if (end < 0) throw new DatabaseDamaged("the end of a block is missing");
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
