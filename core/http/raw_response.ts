import type { ServerResponse } from "node:http";
import { wireFields } from "../util/header_fields.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Lets others answer on Node's own response, within the bounds of the host: it has the headers so far and the status
 * 404, what is written on it is counted, and whoever reads it must make progress. That ends with `reclaim` of
 * `exchange.response`, which has the headers then, unless they were sent.
 */
export function lendResponse(exchange: Exchange): void {
  const { response, http2 } = exchange;
  const raw = response.raw as ServerResponse;
  const fields = wireFields(response.headers, http2);
  if (response.variesByOrigin) fields.push("Vary", "Origin");
  response.headers = {};
  for (let at = 0; at < fields.length; at += 2) raw.appendHeader(fields[at] as string, fields[at + 1] as string);
  raw.statusCode = 404;
  // A late write fails where it was made; nobody else need hear of it.
  raw.on("error", () => undefined);
  const restore = count(exchange, raw);
  response.lent = () => {
    restore();
    if (raw.headersSent) return;
    for (const name of raw.getHeaderNames()) {
      const value = raw.getHeader(name);
      if (value !== undefined) response.headers[name.replaceAll("-", "_")] ??= value;
      raw.removeHeader(name);
    }
    raw.statusCode = 200;
    // HTTP/2 has no reason phrases, and Node warns of them.
    if (!http2) raw.statusMessage = "";
  };
}

/** Counts what is written, and watches who reads it; until the function given back is called. */
function count(exchange: Exchange, raw: ServerResponse): () => void {
  const { write, end } = raw;
  let isEnding = false;
  let isFull = false;
  const add = (chunk: unknown, encoding: unknown) => {
    if (exchange.response.is_head_request) return;
    if (typeof chunk === "string") {
      exchange.response.bytes += Buffer.byteLength(chunk, typeof encoding === "string" ? (encoding as "utf8") : "utf8");
    } else if (chunk instanceof Uint8Array) exchange.response.bytes += chunk.length;
  };
  const wait = () => {
    if (isFull) return;
    isFull = true;
    exchange.watchWriting();
    raw.once("drain", () => {
      isFull = false;
      if (!isEnding) exchange.unwatchWriting();
    });
  };
  raw.write = ((...values: Parameters<typeof write>) => {
    // On HTTP/2 `end` writes through here, too.
    if (!isEnding) add(values[0], values[1]);
    const hasRoom = write.apply(raw, values);
    if (!hasRoom) wait();
    return hasRoom;
  }) as typeof write;
  raw.end = ((...values: Parameters<typeof end>) => {
    isEnding = true;
    add(values[0], values[1]);
    end.apply(raw, values);
    if (raw.writableLength > 0) exchange.watchWriting();
    return raw;
  }) as typeof end;
  return () => {
    Reflect.deleteProperty(raw, "write");
    Reflect.deleteProperty(raw, "end");
  };
}
