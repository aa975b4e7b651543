/** Helpers for bodies that arrive in pieces, of any type. */
import { Readable } from "node:stream";

/** Returns any body as an iterable of its pieces; undefined for a value that is not such a body. */
export function piecesOf(body: unknown): AsyncIterable<unknown> | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  if (body instanceof ReadableStream) return Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
  return Symbol.asyncIterator in body ? (body as AsyncIterable<unknown>) : undefined;
}

/** Returns the body as a Node stream. */
export function byteStream(body: unknown): Readable | undefined {
  const pieces = piecesOf(body);
  if (pieces === undefined || pieces instanceof Readable) return pieces;
  return Readable.from(pieces, { objectMode: true, highWaterMark: 1 });
}
