import { Readable } from "node:stream";
import type { HttpRequest, ResponseHeaders } from "../../types.ts";
import { plainReadStream } from "../../util/plain_file.ts";
import { precondition, rangeApplies, type Validators, validatorsOf } from "./conditions.ts";
import { type ByteRange, byteRanges, type KnownFile, parseRanges } from "./ranges.ts";

type FileRequest = Pick<HttpRequest, "method" | "header">;

/** The result of the conditions of a request for a file (RFC 9110, 13). */
export interface ConditionResult {
  /** Undefined: continue with ranges, or the whole file. */
  readonly status: 304 | 412 | undefined;
  readonly validators: Validators;
  /** The validators as headers. A 412 has none, because its page is not a state of the file. */
  readonly headers: ResponseHeaders;
}

/** Checks the conditions of a GET or HEAD. `coding`: the coding of a precompressed file. */
export function checkConditions(request: FileRequest, { stats }: KnownFile, coding?: string): ConditionResult {
  const validators = validatorsOf(stats, coding);
  const reads = request.method === "GET" || request.method === "HEAD";
  const status = reads ? precondition(request, validators) : undefined;
  const headers = { etag: validators.etag, last_modified: new Date(validators.modified).toUTCString() };
  return { status, validators, headers: status === 412 ? {} : headers };
}

/** The response to a GET for ranges of a file (RFC 9110, 14). */
export interface RangeResponse {
  readonly status: 206 | 416;
  readonly headers: ResponseHeaders;
  /** Undefined for 416. */
  readonly body: Readable | AsyncIterable<Buffer> | undefined;
}

/** Returns undefined when the whole file is to be sent. `type`: its Content-Type. */
export function rangeResponse(
  request: FileRequest,
  file: KnownFile,
  type: string | undefined,
  validators: Validators,
): RangeResponse | undefined {
  const { size } = file.stats;
  const ranges = request.method === "GET" ? rangesOf(request, size, validators) : undefined;
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
  return { status: 206, headers, body: plainReadStream(file.path, { start: first, end: last }) };
}

/** The response to a request for a file: conditions first, then ranges, then the whole file. */
export interface FileResponse {
  readonly status: 200 | 206 | 304 | 412 | 416;
  /** Headers that describe the response. A 412 has none, because its page has its own. */
  readonly headers: ResponseHeaders;
  /** "whole": the caller sends the file as it is. Undefined: there is no body. */
  readonly body: "whole" | Readable | AsyncIterable<Buffer> | undefined;
}

export function fileResponse(request: FileRequest, file: KnownFile, type: string | undefined): FileResponse {
  const { status, headers: state, validators } = checkConditions(request, file);
  if (status !== undefined) return { status, headers: state, body: undefined };
  const content = { ...state, accept_ranges: "bytes", content_type: type };
  const ranges = rangeResponse(request, file, type, validators);
  if (ranges?.status === 416) return { status: 416, headers: { ...state, ...ranges.headers }, body: undefined };
  if (ranges !== undefined) return { ...ranges, headers: { ...content, ...ranges.headers } };
  // An empty stream, because the length of a text would replace the one set here.
  const body = request.method === "HEAD" ? Readable.from([]) : "whole";
  return { status: 200, headers: { ...content, content_length: file.stats.size }, body };
}

function rangesOf(request: FileRequest, size: number, validators: Validators): ByteRange[] | undefined {
  const range = request.header("range");
  if (range === undefined || !rangeApplies(request.header("if-range"), validators)) return undefined;
  return parseRanges(range, size);
}
