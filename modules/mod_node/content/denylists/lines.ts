/** Splits a file into lines, with a limit on the memory for each line. */

/** Maximum size of a line in bytes. */
const MAX_LINE = 2 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Yields the lines without their ends, and undefined for a line that is too long. */
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
