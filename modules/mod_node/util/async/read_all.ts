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
 * All bytes of a source in one array, which `allocate` makes if given. With `transfer` the memory of the pieces is freed as
 * well: whoever sends them must not use them any more.
 *
 * @throws what `tooLong` makes when there are more than `most`
 */
export async function readAll(
  source: AsyncIterable<Uint8Array>,
  most: number,
  tooLong: () => Error,
  {
    allocate,
    transfer = false,
  }: { readonly allocate?: (length: number) => Uint8Array; readonly transfer?: boolean } = {},
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of source) {
    length += piece.length;
    if (length > most) throw tooLong();
    pieces.push(piece);
  }
  if (allocate === undefined) return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces, length);
  const whole = allocate(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
    if (transfer) detach(piece);
  }
  return whole;
}

/**
 * Frees the memory of an array unless other views share it. Otherwise an upload makes the garbage collector mark the
 * whole heap for every few dozen MiB, which is a third of the CPU time.
 */
export function detach({ buffer, length }: Uint8Array): void {
  if (length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
