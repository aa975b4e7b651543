/** Node's own response while middleware writes on it: its headers, and what goes out through it. */
import type { ServerResponse } from "node:http";
import type { ResponseHeaders } from "../types.ts";
import { wireFields } from "../util/header_fields.ts";
import { mergedVary } from "./vary.ts";

/** The answer that a raw response belongs to. */
export interface RawAnswer {
  readonly response: { bytes: number; readonly is_head_request: boolean };
  watchWriting(): void;
  unwatchWriting(): void;
}

/** Sets headers on a raw response, over those that it has; `Vary` is added to, and so are cookies. */
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

/** Takes the headers off a raw response; those that the table has already stay as they are. */
export function collectHeaders(raw: ServerResponse, headers: ResponseHeaders, http2: boolean): void {
  for (const name of raw.getHeaderNames()) {
    const value = raw.getHeader(name);
    const key = name.replaceAll("-", "_");
    if (key === "vary" && headers.vary !== undefined) headers.vary = mergedVary(value, String(headers.vary));
    else if (key === "set_cookie" && headers.set_cookie !== undefined) {
      headers.set_cookie = [...cookiesOf(raw), headers.set_cookie].flat().map(String);
    } else if (value !== undefined) headers[key] ??= value;
    raw.removeHeader(name);
  }
  raw.statusCode = 200;
  // HTTP/2 has no reason phrases, and Node warns of them.
  if (!http2) raw.statusMessage = "";
}

/** The cookies that are set on it, a line each. */
export function cookiesOf(raw: Pick<ServerResponse, "getHeader">): string[] {
  return [raw.getHeader("Set-Cookie") ?? []].flat().map(String);
}

/** Counts what is written, and watches who reads it; until the function given back is called. */
export function countWrites(answer: RawAnswer, raw: ServerResponse): () => void {
  const { write, end } = raw;
  let isEnding = false;
  let isFull = false;
  const add = (chunk: unknown, encoding: unknown) => {
    if (answer.response.is_head_request) return;
    if (typeof chunk === "string") {
      answer.response.bytes += Buffer.byteLength(chunk, typeof encoding === "string" ? (encoding as "utf8") : "utf8");
    } else if (chunk instanceof Uint8Array) answer.response.bytes += chunk.length;
  };
  const wait = () => {
    if (isFull) return;
    isFull = true;
    answer.watchWriting();
    raw.once("drain", () => {
      isFull = false;
      if (!isEnding) answer.unwatchWriting();
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
    if (raw.writableLength > 0) answer.watchWriting();
    return raw;
  }) as typeof end;
  return () => {
    // Not deleted: that would make each access to any field of the response slower.
    Object.assign(raw, { write, end });
  };
}
