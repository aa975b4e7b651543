/** Returns the first `most` bytes of a source, or all of a shorter one, in one array. */
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
 * Returns all bytes of a source in one array.
 * @throws the error that `tooLong` creates when there are more than `most` bytes
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

/** A source whose first piece is at least this long probably has several pieces. */
const LONG_PIECE = 48 * 1024;
/** Length of most blocks that arrive in several pieces. */
const LIKELY_LENGTH = 256 * 1024;

/** A pool of arrays to gather bytes in. */
export interface Arrays {
  take(length: number): Uint8Array;
  release(array: Uint8Array): void;
}

/**
 * Returns all bytes of a source in an array of the pool, or a part of one. It copies each piece
 * when it arrives, because the source may reuse the memory for the next piece.
 * @throws the error that `tooLong` creates when there are more than `most` bytes
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
 * Frees the memory of an array unless it is a view of a larger buffer. Without this, buffers of
 * streamed data make V8 mark the whole heap after every few dozen MiB.
 */
export function detach({ buffer, length }: Uint8Array): void {
  if (length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
