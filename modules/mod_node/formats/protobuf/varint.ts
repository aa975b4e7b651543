/** Numbers in sevens of bits, the lowest first: unsigned, exact up to 2^53. */

/** Bytes that a number takes as a varint. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length += 1;
  return length;
}

/** Writes a varint and returns the place after it. */
export function writeVarint(into: Uint8Array, at: number, value: number): number {
  let rest = value;
  let place = at;
  while (rest >= 128) {
    into[place++] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
  }
  into[place++] = rest;
  return place;
}
