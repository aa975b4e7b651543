import type { ReadStream } from "node:fs";
import { Readable } from "node:stream";

/** Returns the first `length` bytes of a stream that has not been read yet. */
export function bounded(stream: ReadStream, length: number): Readable {
  if (!("end" in stream)) return Readable.from(firstBytes(stream, length), { objectMode: false });
  return Object.assign(stream, { end: length - 1 });
}

async function* firstBytes(stream: AsyncIterable<Buffer>, length: number): AsyncGenerator<Buffer, void, undefined> {
  let left = length;
  if (left === 0) return;
  for await (const piece of stream) {
    yield piece.length > left ? piece.subarray(0, left) : piece;
    left -= piece.length;
    if (left <= 0) return;
  }
}
