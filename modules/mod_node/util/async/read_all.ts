/** All bytes of a source in one piece; of a longer one the first `most`. */
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
 * All bytes of a source in one piece; in the array that `room` makes, where that is given. With `transfer` too the memory
 * of the pieces is given back: whoever sends them does not look at them any more.
 *
 * @throws what `tooLong` makes when there are more than `most`
 */
export async function readAll(
  source: AsyncIterable<Uint8Array>,
  most: number,
  tooLong: () => Error,
  { room, transfer = false }: { readonly room?: (length: number) => Uint8Array; readonly transfer?: boolean } = {},
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of source) {
    length += piece.length;
    if (length > most) throw tooLong();
    pieces.push(piece);
  }
  if (room === undefined) return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces, length);
  const whole = room(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
    if (transfer) detach(piece);
  }
  return whole;
}

/**
 * Gives the memory of a piece back, unless other bytes share it. Left to the collector, an upload makes it mark the whole
 * heap for every few dozen MiB that come: that is a third of the CPU time.
 */
export function detach({ buffer, length }: Uint8Array): void {
  if (length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
