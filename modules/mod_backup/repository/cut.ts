/**
 * Cuts content into pieces. A small change to the content should leave most pieces unchanged, so
 * that the repository already has them.
 */
import { crc32 } from "node:zlib";

/** Bytes in a piece. */
export const PIECE_BYTES = 4 * 1024 * 1024;
/**
 * Each line of text ends a piece with a probability of one in this many. A piece has at least
 * `MIN_LINES_BYTES`.
 */
const LINES_PER_CUT = 512;
const MIN_LINES_BYTES = 16 * 1024;
const NEWLINE = 0x0a;

/** Yields pieces of equal length. */
export async function* fixedPieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (let rest of content) {
    while (rest.length > 0) {
      const taken = rest.subarray(0, PIECE_BYTES - length);
      // The bytes are copied because the reader may reuse its memory. `slice` of a Buffer does not
      // copy.
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

/**
 * Yields pieces that end after certain lines. The choice depends only on the line itself, so an
 * added line changes only one piece.
 */
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

/** Returns the end of the first piece; undefined when the piece may be longer than `bytes`. */
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
