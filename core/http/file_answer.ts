import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { HttpRequest, RequestHeaders, ResponseHeaders } from "../types.ts";
import { precondition, rangeHolds, type Validators, validatorsOf } from "./conditions.ts";
import { type ByteRange, byteRanges, type KnownFile, parseRanges } from "./ranges.ts";

type Asking = Pick<HttpRequest, "method" | "headers">;

/** How the conditions of a request for a file are met (RFC 9110 13). */
export interface ConditionAnswer {
  /** Undefined: go on with ranges, or the whole file. */
  readonly status: 304 | 412 | undefined;
  readonly validators: Validators;
  /** The validators as headers; none of a 412, whose page is no state of the file. */
  readonly headers: ResponseHeaders;
}

/** Conditions are those of GET and HEAD; `coding` is that of a precompressed file. */
export function answerConditions(request: Asking, { stats }: KnownFile, coding?: string): ConditionAnswer {
  const validators = validatorsOf(stats, coding);
  const reads = request.method === "GET" || request.method === "HEAD";
  const status = reads ? precondition(request.headers, validators) : undefined;
  const headers = { etag: validators.etag, last_modified: new Date(validators.modified).toUTCString() };
  return { status, validators, headers: status === 412 ? {} : headers };
}

/** How the ranges of a GET for a file are answered (RFC 9110 14). */
export interface RangeAnswer {
  readonly status: 206 | 416;
  readonly headers: ResponseHeaders;
  /** Undefined for 416. */
  readonly body: Readable | AsyncIterable<Buffer> | undefined;
}

/** Undefined: the whole file is to be sent. `type` is its Content-Type. */
export function answerRanges(
  request: Asking,
  file: KnownFile,
  type: string | undefined,
  validators: Validators,
): RangeAnswer | undefined {
  const { size } = file.stats;
  const ranges = request.method === "GET" ? rangesOf(request.headers, size, validators) : undefined;
  if (ranges === undefined) return undefined;
  const [range] = ranges;
  if (range === undefined) return { status: 416, headers: { content_range: `bytes */${size}` }, body: undefined };
  if (ranges.length > 1) {
    const several = byteRanges(file, type ?? "application/octet-stream", ranges);
    const headers = { content_type: several.type, content_length: several.length };
    return { status: 206, headers, body: several.body };
  }
  const { first, last } = range;
  const headers = { content_range: `bytes ${first}-${last}/${size}`, content_length: last - first + 1 };
  return { status: 206, headers, body: createReadStream(file.path, { start: first, end: last }) };
}

/** How a request for a file is answered: conditions, then ranges, then the whole. */
export interface FileAnswer {
  readonly status: 200 | 206 | 304 | 412 | 416;
  /** All that describes the answer; of a 412 nothing, since its page does. */
  readonly headers: ResponseHeaders;
  /** "whole": the caller sends the file as it is. Undefined: there is no body. */
  readonly body: "whole" | Readable | AsyncIterable<Buffer> | undefined;
}

export function answerFile(request: Asking, file: KnownFile, type: string | undefined): FileAnswer {
  const { status, headers: state, validators } = answerConditions(request, file);
  if (status !== undefined) return { status, headers: state, body: undefined };
  const content = { ...state, accept_ranges: "bytes", content_type: type };
  const ranges = answerRanges(request, file, type, validators);
  if (ranges?.status === 416) return { status: 416, headers: { ...state, ...ranges.headers }, body: undefined };
  if (ranges !== undefined) return { ...ranges, headers: { ...content, ...ranges.headers } };
  // A stream, since the length of a text would replace the one set here.
  const body = request.method === "HEAD" ? Readable.from([]) : "whole";
  return { status: 200, headers: { ...content, content_length: file.stats.size }, body };
}

function rangesOf(headers: RequestHeaders, size: number, validators: Validators): ByteRange[] | undefined {
  if (headers.range === undefined || !rangeHolds(headers.if_range, validators)) return undefined;
  return parseRanges(headers.range, size);
}
