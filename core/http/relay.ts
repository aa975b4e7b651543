/** What carries a message of HTTP from one connection to another: for those who hand requests on. */
import { isAscii } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/** Bytes of a body that are looked at whether they are plain text. */
const MAX_TEXT = 4096;

/** Fields of one connection alone (RFC 9110, 7.6.1), beside those that `Connection` names. In lower case. */
export const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "upgrade",
  "expect",
]);

/** The body of an answer that has come in one piece with its head: sent as one, it costs half of what a stream does. */
export function wholeBody(incoming: IncomingMessage, method: string): Buffer | string | undefined {
  const length = Number(incoming.headers["content-length"] ?? 0);
  if (!incoming.complete || length === 0 || method === "HEAD") return undefined;
  if (incoming.readableLength !== length) return undefined;
  const bytes: Buffer = incoming.read();
  // Text leaves in one write with the head. Without a content type it is the kind of the body that gives one.
  const isText = length <= MAX_TEXT && incoming.headers["content-type"] !== undefined && isAscii(bytes);
  return isText ? bytes.toString("latin1") : bytes;
}

/** Those of a message that has been read to its end. */
export function trailersOf({ rawTrailers }: IncomingMessage): Record<string, string> {
  const trailers: Record<string, string> = {};
  for (let at = 0; at < rawTrailers.length; at += 2)
    trailers[rawTrailers[at] as string] = rawTrailers[at + 1] as string;
  return trailers;
}

/** The head of an answer that switches protocols, with these fields. */
export function switchingHead(rawHeaders: readonly string[]): string {
  const lines = ["HTTP/1.1 101 Switching Protocols"];
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/**
 * What comes on one goes out on the other, no faster than that takes it. Both end together: what one has sent before its end
 * still goes out, and one that breaks breaks the other.
 */
export function joinSockets(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", () => undefined);
    from.once("close", () => {
      if (from.readableEnded) to.destroySoon();
      else to.destroy();
    });
    from.pipe(to);
  }
}
