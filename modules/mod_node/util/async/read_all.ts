/** The bytes of a source in one array, but no more than the first `most`. */
export async function readUpTo(
  source: AsyncIterable<Uint8Array>,
  most = Number.POSITIVE_INFINITY,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of source) {
    const wanted = piece.length > most - length ? piece.subarray(0, most - length) : piece;
    length += wanted.length;
    pieces.push(wanted);
    if (length >= most) break;
  }
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
}

/**
 * All bytes of a source in one array. @throws what `tooLong` makes when there are more than `most`
 */
export async function readAll(
  source: AsyncIterable<Uint8Array>,
  most: number,
  tooLong: () => Error,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of source) {
    length += piece.length;
    if (length > most) throw tooLong();
    pieces.push(piece);
  }
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces, length);
}

/** A first piece of so many bytes is likely to be one of several. */
const LONG_PIECE = 48 * 1024;
/** Bytes of most blocks that come in several pieces. */
const LIKELY_LENGTH = 256 * 1024;

/** Arrays to gather bytes in, as a pool gives them. */
export interface Arrays {
  take(length: number): Uint8Array;
  release(array: Uint8Array): void;
}

/**
 * All bytes of a source in one of the arrays, or a part of it. They are copied as they come: a
 * piece may serve again when the next one is asked for.
 *
 * @throws what `tooLong` makes when there are more than `most`
 */
export async function gatherAll(
  source: AsyncIterable<Uint8Array>,
  arrays: Arrays,
  most: number,
  tooLong: () => Error,
): Promise<Uint8Array> {
  let whole: Uint8Array = new Uint8Array(0);
  let length = 0;
  try {
    for await (const piece of source) {
      const end = length + piece.length;
      if (end > most) throw tooLong();
      if (end > whole.length) {
        const larger = arrays.take(end < LONG_PIECE ? end : Math.max(end, LIKELY_LENGTH, 2 * whole.length));
        larger.set(whole.subarray(0, length));
        arrays.release(whole);
        whole = larger;
      }
      whole.set(piece, length);
      length = end;
    }
  } catch (error) {
    arrays.release(whole);
    throw error;
  }
  return whole.subarray(0, length);
}

/**
 * Frees the memory of an array unless other views share it. Otherwise what passes through makes the
 * garbage collector mark the whole heap for every few dozen MiB.
 */
export function detach({ buffer, length }: Uint8Array): void {
  if (length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
