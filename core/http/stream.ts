import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Exchange } from "./exchange.ts";
import type { NodeResponse } from "./response.ts";

/** Any body that comes in pieces, as a Node stream; undefined when it is none. */
export function byteStream(body: unknown): Readable | undefined {
  if (body instanceof Readable) return body;
  if (body instanceof ReadableStream) return Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
  if (typeof body === "object" && body !== null && Symbol.asyncIterator in body) {
    return Readable.from(body as AsyncIterable<unknown>, { objectMode: true, highWaterMark: 1 });
  }
  return undefined;
}

/** Lets go of a handler's value that is not sent: files are closed, generators ended, their errors of no interest. */
export function discard(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (value instanceof Readable) value.on("error", () => undefined).destroy();
  else if (value instanceof ReadableStream) value.cancel().catch(() => undefined);
  else if (Symbol.asyncIterator in value) discard(byteStream(value));
  else if ("body" in value) discard(value.body);
}

/** Milliseconds after which others have their turn, though neither the stream nor the client has to be waited for. */
const turnTime = 10;

/**
 * Moves a stream into the answer, no faster than the client reads. Ends quietly when the client leaves, and then
 * destroys the stream; rejects when the stream fails, or does not have the `length` that was announced.
 */
export async function pump(exchange: Exchange, source: Readable, length: number | undefined): Promise<void> {
  if (exchange.gone) {
    discard(source);
    return;
  }
  const { raw } = exchange.response;
  const wrong = (sent: string) =>
    new Error(`The body has ${sent} than the ${length} bytes that content_length announced`);
  const leave = () => source.destroy();
  raw.once("close", leave);
  let turn = performance.now() + turnTime;
  try {
    for await (const piece of source as AsyncIterable<unknown>) {
      if (exchange.gone) return;
      if (typeof piece !== "string" && !(piece instanceof Uint8Array)) {
        throw new TypeError(`A response stream gave a ${typeof piece}: only strings and bytes can be sent`);
      }
      if (piece.length === 0) continue;
      exchange.response.bytes += typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;
      if (length !== undefined && exchange.response.bytes > length) throw wrong("more");
      if (!(raw as ServerResponse).write(piece)) {
        exchange.watchWriting();
        await drained(raw);
        exchange.unwatchWriting();
      } else if (performance.now() > turn) {
        await nextTurn();
        turn = performance.now() + turnTime;
      }
    }
    if (length !== undefined && exchange.response.bytes < length && !exchange.gone) throw wrong("less");
  } catch (error) {
    if (!exchange.gone) throw error;
  } finally {
    raw.removeListener("close", leave);
    source.destroy();
  }
}

/** Resolves when the connection takes more, or is gone. */
function drained(raw: NodeResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      raw.removeListener("drain", done).removeListener("close", done);
      resolve();
    };
    raw.on("drain", done).on("close", done);
  });
}
