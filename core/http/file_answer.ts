import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { HttpRequest, RequestHeaders, ResponseHeaders } from "../types.ts";
import { precondition, rangeHolds, type Validators, validatorsOf } from "./conditions.ts";
import { type ByteRange, byteRanges, type KnownFile, parseRanges } from "./ranges.ts";

export interface FileForm {
  /** Content-Type; undefined sends none. */
  readonly type: string | undefined;
  /** Content-Encoding of a precompressed file. */
  readonly coding?: string | undefined;
}

/** How a request for a file is answered (RFC 9110 13 and 14): conditions, then ranges, of GET and HEAD. */
export interface FileAnswer {
  readonly status: 200 | 206 | 304 | 412 | 416;
  /** All that describes the answer; of a 412 nothing, since its page does. */
  readonly headers: ResponseHeaders;
  /** "whole": the caller sends the file as it is. Undefined: there is no body. */
  readonly body: "whole" | Readable | AsyncIterable<Buffer> | undefined;
}

export function answerFile(
  request: Pick<HttpRequest, "method" | "headers">,
  file: KnownFile,
  { type, coding }: FileForm,
): FileAnswer {
  const { size } = file.stats;
  const validators = validatorsOf(file.stats, coding);
  const reads = request.method === "GET" || request.method === "HEAD";
  const refused = reads ? precondition(request.headers, validators) : undefined;
  if (refused === 412) return { status: 412, headers: {}, body: undefined };
  const state = { etag: validators.etag, last_modified: new Date(validators.modified).toUTCString() };
  if (refused === 304) return { status: 304, headers: state, body: undefined };

  const content = { ...state, accept_ranges: "bytes", content_type: type, content_encoding: coding };
  const whole = { status: 200, headers: { ...content, content_length: size } } as const;
  // A stream, since the length of a text would replace the one set here.
  if (request.method === "HEAD") return { ...whole, body: Readable.from([]) };
  const ranges = request.method === "GET" ? rangesOf(request.headers, size, validators) : undefined;
  if (ranges === undefined) return { ...whole, body: "whole" };

  const [range] = ranges;
  if (range === undefined) {
    return { status: 416, headers: { ...state, content_range: `bytes */${size}` }, body: undefined };
  }
  if (ranges.length > 1) {
    const several = byteRanges(file, type ?? "application/octet-stream", ranges);
    const headers = { ...content, content_type: several.type, content_length: several.length };
    return { status: 206, headers, body: several.body };
  }
  const { first, last } = range;
  const headers = { ...content, content_range: `bytes ${first}-${last}/${size}`, content_length: last - first + 1 };
  return { status: 206, headers, body: createReadStream(file.path, { start: first, end: last }) };
}

function rangesOf(headers: RequestHeaders, size: number, validators: Validators): ByteRange[] | undefined {
  if (headers.range === undefined || !rangeHolds(headers.if_range, validators)) return undefined;
  return parseRanges(headers.range, size);
}
