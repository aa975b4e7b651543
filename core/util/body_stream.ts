/** Bodies that come in pieces, whatever they are made of. */
import { Readable } from "node:stream";

/** Any body that comes in pieces; undefined when it is none. */
export function piecesOf(body: unknown): AsyncIterable<unknown> | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  if (body instanceof ReadableStream) return Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
  return Symbol.asyncIterator in body ? (body as AsyncIterable<unknown>) : undefined;
}

/** The same as a Node stream. */
export function byteStream(body: unknown): Readable | undefined {
  const pieces = piecesOf(body);
  if (pieces === undefined || pieces instanceof Readable) return pieces;
  return Readable.from(pieces, { objectMode: true, highWaterMark: 1 });
}
