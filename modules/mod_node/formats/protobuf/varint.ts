/**
 * Varints: unsigned LEB128, as protobuf, multiformats and CARv1 use it. Numbers are exact up to
 * 2^53.
 */

/** Length in bytes of a number as a varint. */
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
 * Writes a signed integer of 64 bits, of which a negative one takes ten bytes, and returns the
 * offset after it.
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
