/**
 * Decompresses Snappy blocks (https://github.com/google/snappy/blob/main/format_description.txt).
 */
import { DatabaseDamaged, Fields } from "../lsm/fields.ts";

/**
 * Decompresses a block.
 * @throws DatabaseDamaged
 */
export function expandSnappy(compressed: Uint8Array): Buffer {
  const read = new Fields(compressed);
  const expanded = Buffer.alloc(lengthOf(read, compressed.length));
  let at = 0;
  while (!read.atEnd) {
    const tag = read.byte();
    const kind = tag & 3;
    if (kind === 0) {
      const literal = read.take(literalLength(read, tag >> 2));
      if (at + literal.length > expanded.length) throw wrong();
      expanded.set(literal, at);
      at += literal.length;
      continue;
    }
    const length = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
    const back = kind === 1 ? (tag >> 5) * 256 + read.byte() : little(read, kind === 2 ? 2 : 4);
    if (back === 0 || back > at || at + length > expanded.length) throw wrong();
    // Source and target may overlap; the bytes then repeat.
    for (const end = at + length; at < end; at += 1) expanded[at] = expanded[at - back] as number;
  }
  if (at !== expanded.length) throw wrong();
  return expanded;
}

/** Returns the uncompressed length. It checks that each tag of 2 bytes yields at most 64 bytes. */
function lengthOf(read: Fields, compressed: number): number {
  const length = read.varint();
  if (length > compressed * 64) throw wrong();
  return length;
}

/** Lengths up to 60 are in the tag; larger ones follow it in 1 to 4 bytes. */
const literalLength = (read: Fields, high: number): number => (high < 60 ? high : little(read, high - 59)) + 1;

function little(read: Fields, bytes: number): number {
  let value = 0;
  for (let index = 0; index < bytes; index += 1) value += read.byte() * 256 ** index;
  return value;
}

const wrong = () => new DatabaseDamaged("a compressed block is damaged");
