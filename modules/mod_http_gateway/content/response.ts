/** Responds with bytes: all of them, one range, or several ranges. */
import { type ByteRange, parseRanges, rangeApplies, severalRanges } from "../../../core/http/index.ts";
import type { PooledBody, ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { SNIFFED_BYTES, typeByContent } from "../media/sniff.ts";
import { joined } from "./begun.ts";
import type { Source } from "./source.ts";

export interface Content {
  readonly source: Source;
  /** Undefined if the type is detected from the bytes. */
  readonly type: string | undefined;
  /** Etag, and other headers that do not depend on the range. */
  readonly headers: ResponseHeaders;
  /** Modification time in milliseconds, for If-Range. */
  readonly modified?: number | undefined;
}

/** @throws NodeError for bytes that cannot be read, {Refusal} 416, 501 */
export async function contentResponse(call: GatewayCall, content: Content): Promise<ResponseFields> {
  const { source } = content;
  const ranges = rangesOf(call, content);
  const headers: ResponseHeaders = { ...content.headers, accept_ranges: "bytes" };
  if (ranges === undefined) return wholeResponse(call, { ...content, headers });
  const [range] = ranges;
  if (range === undefined) {
    const unsatisfied = { ...content.headers, content_range: `bytes */${source.size}`, last_modified: undefined };
    throw new Refusal(416, "invalid range: failed to overlap", { headers: unsatisfied });
  }
  if (ranges.length > 1) return multipartResponse(call, content, headers, ranges);
  const { type, body } = await begun(call, content, range);
  headers.content_type = type;
  headers.content_range = `bytes ${range.first}-${range.last}/${source.size}`;
  headers.content_length = range.last - range.first + 1;
  return { status_code: 206, headers, body };
}

/**
 * Responds with the whole content, ignoring ranges. @throws NodeError for bytes that cannot be read
 */
export async function wholeResponse(call: GatewayCall, content: Content): Promise<ResponseFields> {
  const { source, headers } = content;
  const { type, body } = await begun(call, content, { first: 0, last: source.size - 1 });
  return { headers: { ...headers, content_type: type, content_length: source.size }, body };
}

function rangesOf(
  { request, settings }: GatewayCall,
  { source, headers, modified = Number.NaN }: Content,
): ByteRange[] | undefined {
  const range = request.header("range");
  if (range === undefined || source.size === 0) return undefined;
  if (!rangeApplies(request.header("if-range"), { etag: String(headers.etag), modified })) return undefined;
  const ranges = parseRanges(range, source.size);
  const { maxRangeFile } = settings;
  if (ranges !== undefined && maxRangeFile > 0 && source.size > maxRangeFile) {
    throw new Refusal(
      501,
      `ranges of files larger than ${maxRangeFile} bytes are not served here: fetch all of it, or its blocks`,
    );
  }
  return ranges;
}

/** Up to this many bytes are sent in one piece. */
const MAX_GATHERED_BYTES = 64 * 1024;

const none = new Uint8Array();
const nothing: PooledBody = { async *[Symbol.asyncIterator]() {}, release: () => undefined };

/**
 * Resolves when the first bytes have arrived, so that an earlier error still gets a status, and the
 * type can be detected.
 */
async function begun(
  { request, reading }: GatewayCall,
  { source, type: known }: Content,
  range: ByteRange,
): Promise<{ type: string; body: Uint8Array | PooledBody }> {
  const length = range.last - range.first + 1;
  // The type is always detected from the beginning of the file, whichever range is requested.
  const isLater = source.bytes === undefined && range.first > 0 && length > 0;
  const type = known ?? (isLater ? await typeOf(source, { first: 0, last: SNIFFED_BYTES - 1 }) : undefined);
  const isWhole = length === source.size;
  if (source.bytes !== undefined) {
    const bytes = isWhole ? source.bytes : source.bytes.subarray(range.first, range.last + 1);
    // A range can also be typed, because all bytes are in memory.
    const shown = type ?? typeByContent(source.bytes, true);
    const body = request.method === "HEAD" ? bytes : reading.leased(bytes);
    if (body !== undefined) return { type: shown, body };
    const { leases } = reading;
    return {
      type: shown,
      body: reading.body(leases.reread(bytes)(0, length - 1), { length, release: (piece) => leases.release(piece) }),
    };
  }
  if (length === 0) return { type: type ?? typeByContent(none, true), body: none };
  if (request.method === "HEAD") return { type: type ?? (await typeOf(source, range)), body: nothing };
  if (length <= MAX_GATHERED_BYTES) {
    const { start, body } = await source.few(range);
    return { type: type ?? typeByContent(start, isWhole && start.length === length), body };
  }
  const pieces = source.pieces(range);
  const first = await pieces.next();
  const start = first.done === true ? none : first.value;
  return {
    type: type ?? typeByContent(start, isWhole && start.length === length),
    body: reading.body(first.done === true ? pieces : joined(start, pieces), { length, release: source.release }),
  };
}

/** Reads only the bytes that type detection needs. */
async function typeOf(source: Source, { first, last }: ByteRange): Promise<string> {
  const pieces = source.pieces({ first, last: Math.min(last, first + SNIFFED_BYTES - 1) });
  const { value } = await pieces.next();
  await pieces.return();
  const start = value ?? none;
  const type = typeByContent(start, start.length === source.size);
  source.release(start);
  return type;
}

async function multipartResponse(
  { request, reading }: GatewayCall,
  { source, type }: Content,
  headers: ResponseHeaders,
  ranges: readonly ByteRange[],
): Promise<ResponseFields> {
  const known = type ?? (await typeOf(source, { first: 0, last: SNIFFED_BYTES - 1 }));
  const { pieces, release } = leasedSource(source, reading);
  const several = severalRanges(source.size, known, ranges, pieces);
  const described = { ...headers, content_type: several.type, content_length: several.length };
  const body = request.method === "HEAD" ? nothing : reading.body(several.body, { length: several.length, release });
  return { status_code: 206, headers: described, body };
}

/**
 * If too much memory is already leased, the bytes are read again from the source, so that the
 * response does not keep them in memory.
 */
function leasedSource(source: Source, { leases }: GatewayCall["reading"]): Pick<Source, "pieces" | "release"> {
  if (source.bytes === undefined || leases.lease(source.bytes)) return source;
  const again = leases.reread(source.bytes);
  return { pieces: ({ first, last }) => again(first, last), release: (piece) => leases.release(piece) };
}
