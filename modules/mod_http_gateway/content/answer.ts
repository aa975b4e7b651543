/** Answers with bytes: whole, a range of them, or several. */
import { type ByteRange, parseRanges, rangeHolds, severalRanges } from "../../../core/http/index.ts";
import type { PooledBody, ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { Refusal } from "../errors/refusal.ts";
import { SNIFFED_BYTES, typeByContent } from "../media/sniff.ts";
import { joined } from "./begun.ts";
import type { Source } from "./source.ts";

export interface Content {
  readonly source: Source;
  /** Undefined: the bytes tell it. */
  readonly type: string | undefined;
  /** Etag, and all that is said of the content whatever is sent of it. */
  readonly headers: ResponseHeaders;
  /** Milliseconds, for If-Range. */
  readonly modified?: number | undefined;
}

/** @throws NodeError for bytes that cannot be read, {Refusal} 416, 501 */
export async function contentAnswer(asked: Asked, content: Content): Promise<ResponseFields> {
  const { source } = content;
  const ranges = rangesOf(asked, content);
  const headers: ResponseHeaders = { ...content.headers, accept_ranges: "bytes" };
  if (ranges === undefined) return wholeAnswer(asked, { ...content, headers });
  const [range] = ranges;
  if (range === undefined) {
    const unsatisfied = { ...content.headers, content_range: `bytes */${source.size}`, last_modified: undefined };
    throw new Refusal(416, "invalid range: failed to overlap", { headers: unsatisfied });
  }
  if (ranges.length > 1) return severalAnswer(asked, content, headers, ranges);
  const { type, body } = await begun(asked, content, range);
  headers.content_type = type;
  headers.content_range = `bytes ${range.first}-${range.last}/${source.size}`;
  headers.content_length = range.last - range.first + 1;
  return { status_code: 206, headers, body };
}

/** Whatever range is asked for. @throws NodeError for bytes that cannot be read */
export async function wholeAnswer(asked: Asked, content: Content): Promise<ResponseFields> {
  const { source, headers } = content;
  const { type, body } = await begun(asked, content, { first: 0, last: source.size - 1 });
  return { headers: { ...headers, content_type: type, content_length: source.size }, body };
}

function rangesOf(
  { request, settings }: Asked,
  { source, headers, modified = Number.NaN }: Content,
): ByteRange[] | undefined {
  const { range, if_range } = request.headers;
  if (range === undefined || source.size === 0) return undefined;
  if (!rangeHolds(if_range, { etag: String(headers.etag), modified })) return undefined;
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

/** So much is sent in one piece. */
const MAX_GATHERED_BYTES = 64 * 1024;

const none = new Uint8Array();
const nothing: PooledBody = { async *[Symbol.asyncIterator]() {}, release: () => undefined };

/** Resolves when the first bytes are there: what prevents them has a status, and they may tell the type. */
async function begun(
  { request, reading }: Asked,
  { source, type }: Content,
  range: ByteRange,
): Promise<{ type: string; body: Uint8Array | PooledBody }> {
  const length = range.last - range.first + 1;
  const isWhole = length === source.size;
  if (source.bytes !== undefined) {
    const bytes = isWhole ? source.bytes : source.bytes.subarray(range.first, range.last + 1);
    // Also for a range of it: all of it is here.
    const known = type ?? typeByContent(source.bytes, true);
    const body = request.method === "HEAD" ? bytes : reading.lent(bytes);
    if (body !== undefined) return { type: known, body };
    const { lending } = reading;
    return {
      type: known,
      body: reading.body(lending.again(bytes)(0, length - 1), { length, release: (piece) => lending.release(piece) }),
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

/** Only so much is read as it takes. */
async function typeOf(source: Source, { first, last }: ByteRange): Promise<string> {
  const pieces = source.pieces({ first, last: Math.min(last, first + SNIFFED_BYTES - 1) });
  const { value } = await pieces.next();
  await pieces.return();
  const start = value ?? none;
  const type = typeByContent(start, start.length === source.size);
  source.release(start);
  return type;
}

async function severalAnswer(
  { request, reading }: Asked,
  { source, type }: Content,
  headers: ResponseHeaders,
  ranges: readonly ByteRange[],
): Promise<ResponseFields> {
  const known = type ?? (await typeOf(source, { first: 0, last: SNIFFED_BYTES - 1 }));
  const { pieces, release } = lentSource(source, reading);
  const several = severalRanges(source.size, known, ranges, pieces);
  const described = { ...headers, content_type: several.type, content_length: several.length };
  const body = request.method === "HEAD" ? nothing : reading.body(several.body, { length: several.length, release });
  return { status_code: 206, headers: described, body };
}

/** What is in memory is read again where too much is lent already; then nothing that is given here holds it. */
function lentSource(source: Source, { lending }: Asked["reading"]): Pick<Source, "pieces" | "release"> {
  if (source.bytes === undefined || lending.lend(source.bytes)) return source;
  const again = lending.again(source.bytes);
  return { pieces: ({ first, last }) => again(first, last), release: (piece) => lending.release(piece) };
}
