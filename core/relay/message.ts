/** Parts of HTTP messages that are sent on as they arrive. */
import { isAscii } from "node:buffer";
import type { ClientRequest, IncomingMessage } from "node:http";

/** Bytes of the largest body that is checked for plain text. */
const MAX_TEXT = 4096;

/**
 * Returns the body of a response if all of it has arrived together with the head; otherwise
 * undefined. Sending one piece costs half as much as sending a stream.
 */
export function wholeBody(incoming: IncomingMessage, method: string): Buffer | string | undefined {
  const length = Number(incoming.headers["content-length"] ?? 0);
  if (!incoming.complete || length === 0 || method === "HEAD") return undefined;
  if (incoming.readableLength !== length) return undefined;
  // Without a length, Node.js 26 returns one piece instead of all that has arrived.
  return textOrBytes(incoming.read(length), incoming.headers["content-type"] !== undefined);
}

/**
 * Returns a short body of ASCII as text, which is sent in one write with the head. A body without a
 * content type stays bytes, because the host might add a content type to text.
 */
export function textOrBytes(bytes: Buffer, hasType: boolean): Buffer | string {
  return hasType && bytes.length <= MAX_TEXT && isAscii(bytes) ? bytes.toString("latin1") : bytes;
}

/**
 * Sends the head of a request at once, one byte for each character: `flushHeaders` would encode it
 * as UTF-8.
 */
export function sendHead(outgoing: ClientRequest): void {
  outgoing.write("", "latin1");
}

/** Returns the trailers of a message that has been read to its end. */
export function trailersOf({ rawTrailers }: { readonly rawTrailers: readonly string[] }): [string, string][] {
  const trailers: [string, string][] = [];
  for (let at = 0; at < rawTrailers.length; at += 2)
    trailers.push([rawTrailers[at] as string, rawTrailers[at + 1] as string]);
  return trailers;
}
