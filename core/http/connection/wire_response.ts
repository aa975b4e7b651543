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
    return super.write(...unjoined(chunk), typeof encoding === "function" ? encoding : done);
  }

  override end(chunk?: unknown, encoding?: BufferEncoding | (() => void) | null, done?: () => void): this {
    if (!isText(chunk, encoding)) return super.end(chunk, encoding as BufferEncoding, done);
    return super.end(...unjoined(chunk), typeof encoding === "function" ? encoding : done);
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
 * Returns a text in a form that Node may join to the head. ASCII is the same in both encodings. Any
 * other text becomes bytes, which Node writes separately.
 */
function unjoined(text: string): [string | Buffer, BufferEncoding] {
  return Buffer.byteLength(text) === text.length ? [text, "latin1"] : [Buffer.from(text), "utf8"];
}
