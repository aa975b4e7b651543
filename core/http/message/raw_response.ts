/**
 * Handles Node's own response while middleware writes on it: its headers, and the number of bytes
 * written.
 */
import type { ServerResponse } from "node:http";
import type { ResponseHeaders } from "../../types.ts";
import { wireFields, wireName } from "../../util/header_fields.ts";
import { isNamed } from "../policy/default_headers.ts";
import { mergedVary } from "./vary.ts";

/** The exchange of a raw response. */
export interface CountedExchange {
  readonly request: { watch(): void };
  readonly response: { bytes: number; readonly is_head_request: boolean };
  watchWriting(): void;
  unwatchWriting(): void;
}

/**
 * Sets headers on a raw response. They replace existing ones, except that `Vary` and cookies are
 * added.
 */
export function pourHeaders(headers: ResponseHeaders, raw: ServerResponse, http2: boolean): void {
  const fields = wireFields(headers, http2);
  const known = new Set<string>();
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    if (name === "Vary" && raw.hasHeader(name)) raw.setHeader(name, mergedVary(raw.getHeader(name), value));
    else if (known.has(name) || name === "Set-Cookie") raw.appendHeader(name, value);
    else raw.setHeader(name, value);
    known.add(name);
  }
}

/**
 * Moves the headers of a raw response into the table. Headers that the table already has stay
 * unchanged, except that `Vary` and cookies are merged.
 */
export function collectHeaders(raw: ServerResponse, headers: ResponseHeaders, http2: boolean): void {
  for (const name of raw.getHeaderNames()) {
    const value = raw.getHeader(name);
    const key = name.replaceAll("-", "_");
    if (key === "vary" && headers.vary !== undefined) headers.vary = mergedVary(value, String(headers.vary));
    else if (key === "set_cookie" && headers.set_cookie !== undefined) {
      headers.set_cookie = [...cookiesOf(raw), headers.set_cookie].flat().map(String);
    } else if (value !== undefined && !isNamed(headers, wireName(name))) headers[key] = value;
    raw.removeHeader(name);
  }
  raw.statusCode = 200;
  // HTTP/2 has no reason phrases, and Node warns of them.
  if (!http2) raw.statusMessage = "";
}

/** Returns the cookies that are set on a raw response, one line each. */
export function cookiesOf(raw: Pick<ServerResponse, "getHeader">): string[] {
  return [raw.getHeader("Set-Cookie") ?? []].flat().map(String);
}

/**
 * Counts written bytes, and requires the client to make progress in reading. The returned function
 * ends this.
 */
export function countWrites(exchange: CountedExchange, raw: ServerResponse): () => void {
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
    // On HTTP/2, `end` also calls `write`.
    if (!isEnding) {
      add(values[0], values[1]);
      exchange.request.watch();
    }
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
    // Deleting the fields would make each later access to the response slower.
    Object.assign(raw, { write, end });
  };
}
