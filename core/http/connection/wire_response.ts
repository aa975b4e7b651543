import { ServerResponse } from "../../util/node_http.ts";

type Done = (error?: Error | null) => void;

/**
 * Node's response, except that each character of the head is always sent as one byte, as in HTTP/2.
 * Node writes the head and a following string in one piece, in the encoding of the string: a header
 * beyond ASCII would be sent as different bytes for each kind of body.
 */
export class WireResponse extends ServerResponse {
  override write(chunk: unknown, encoding?: BufferEncoding | Done | null, done?: Done): boolean {
    if (!isText(chunk, encoding)) return super.write(chunk, encoding as BufferEncoding, done);
    const callback = typeof encoding === "function" ? encoding : done;
    // Node may join ASCII to the head: it is the same in both encodings.
    if (isAscii(chunk)) return super.write(chunk, "latin1", callback);
    return super.write(Buffer.from(chunk), callback);
  }

  override end(chunk?: unknown, encoding?: BufferEncoding | (() => void) | null, done?: () => void): this {
    if (!isText(chunk, encoding)) return super.end(chunk, encoding as BufferEncoding, done);
    const callback = typeof encoding === "function" ? encoding : done;
    if (isAscii(chunk)) return super.end(chunk, "latin1", callback);
    return super.end(Buffer.from(chunk), callback);
  }

  override flushHeaders(): void {
    // Node ignores writes of a response without a body. Such a response does not have to wait for
    // one either.
    if (this.req.method === "HEAD") super.flushHeaders();
    else super.write("", "latin1");
  }
}

function isText(chunk: unknown, encoding: unknown): chunk is string {
  const isUtf8 = typeof encoding === "function" || encoding === "utf8" || !encoding;
  return isUtf8 && typeof chunk === "string" && chunk !== "";
}

/**
 * Whether the text is the same bytes in latin1 and in UTF-8. Any other text is sent as bytes, which
 * Node writes separately from the head.
 */
function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}
