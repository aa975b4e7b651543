/**
 * Reads and writes varints: unsigned LEB128, as in protobuf, multiformats and CARv1. Numbers are
 * exact up to 2^53.
 */

/** Returns the length of a number in bytes when it is written as a varint. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length += 1;
  return length;
}

/** Writes a varint and returns the offset after it. */
export function writeVarint(into: Uint8Array, at: number, value: number): number {
  let rest = value;
  let offset = at;
  while (rest >= 128) {
    into[offset++] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
  }
  into[offset++] = rest;
  return offset;
}

/**
 * Writes a signed 64-bit integer and returns the offset after it. A negative integer takes ten
 * bytes.
 */
export function writeVarint64(into: Uint8Array, at: number, value: bigint): number {
  let rest = BigInt.asUintN(64, value);
  let offset = at;
  while (rest >= 128n) {
    into[offset++] = Number(rest & 0x7fn) | 0x80;
    rest >>= 7n;
  }
  into[offset++] = Number(rest);
  return offset;
}
