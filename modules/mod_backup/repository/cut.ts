/** Cuts content into pieces, so that most of them are in the repository already when little of it has changed. */
import { crc32 } from "node:zlib";

/** Bytes of a piece. */
export const PIECE_BYTES = 4 * 1024 * 1024;
/** Of text, a piece ends behind one line of so many, and has so many bytes at least. */
const LINES_PER_CUT = 512;
const MIN_LINES_BYTES = 16 * 1024;
const NEWLINE = 0x0a;

/** Pieces of the same length. */
export async function* fixedPieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (let rest of content) {
    while (rest.length > 0) {
      const taken = rest.subarray(0, PIECE_BYTES - length);
      // A copy: the reader may use its memory again. (`slice` of a Buffer is none.)
      parts.push(Buffer.from(taken));
      length += taken.length;
      rest = rest.subarray(taken.length);
      if (length < PIECE_BYTES) continue;
      yield Buffer.concat(parts, length);
      parts = [];
      length = 0;
    }
  }
  if (length > 0) yield Buffer.concat(parts, length);
}

/** Pieces that end behind certain lines, whatever stands before those: one more line changes one piece. */
export async function* linePieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const bytes of content) {
    rest = Buffer.concat([rest, bytes]);
    for (let cut = cutOf(rest); cut !== undefined; cut = cutOf(rest)) {
      yield rest.subarray(0, cut);
      rest = rest.subarray(cut);
    }
  }
  if (rest.length > 0) yield rest;
}

/** Where the first piece ends; undefined when it may be longer than what there is of it. */
function cutOf(bytes: Buffer): number | undefined {
  let begin = 0;
  for (let end = bytes.indexOf(NEWLINE) + 1; end > 0; end = bytes.indexOf(NEWLINE, end) + 1) {
    const line = bytes.subarray(begin, end);
    if (end >= MIN_LINES_BYTES && crc32(line) % LINES_PER_CUT === 0) return end;
    if (end >= PIECE_BYTES) return end;
    begin = end;
  }
  return bytes.length >= 2 * PIECE_BYTES ? PIECE_BYTES : undefined;
}
