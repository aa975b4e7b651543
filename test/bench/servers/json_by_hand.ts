import type { IncomingMessage } from "node:http";

const MAX_BYTES = 1024 * 1024;

/**
 * Parses the JSON of a body as parsers for Koa and node:http do: it limits the size and decodes the
 * text once.
 */
export async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > MAX_BYTES) throw Object.assign(new Error("The body is too large"), { status: 413 });
    pieces.push(piece);
  }
  return JSON.parse(Buffer.concat(pieces).toString());
}
