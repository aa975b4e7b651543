/** Splits a file into lines, of which none takes more memory than it may. */

/** Bytes of a line. */
const MAX_LINE = 2 * 1024 * 1024;
const NEWLINE = 0x0a;

/** The lines without their ends; undefined for one that is too long. */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string | undefined, void, undefined> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array) => {
    size += part.length;
    if (size < MAX_LINE) parts.push(part);
    else parts = [];
  };
  const take = () => {
    const text = size < MAX_LINE ? Buffer.concat(parts).toString().replace(/\r$/, "") : undefined;
    parts = [];
    size = 0;
    return text;
  };
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      add(piece.subarray(from, end));
      from = end + 1;
      yield take();
    }
    if (from < piece.length) add(piece.subarray(from));
  }
  if (size > 0) yield take();
}
