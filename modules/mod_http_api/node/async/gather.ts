/** All bytes of a source in one piece; of a longer one the first `most`. */
export async function gather(source: AsyncIterable<Uint8Array>, most = Number.POSITIVE_INFINITY): Promise<Uint8Array> {
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
