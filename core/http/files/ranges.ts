import { randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { PLAIN_READ } from "../../util/plain_file.ts";

/** A file, with its state when the response began. */
export interface KnownFile {
  readonly path: string;
  readonly stats: Stats;
}

/** Bytes from `first` to `last`, both included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** No honest request has more ranges: the whole file is sent. */
const MAX_RANGES = 100;

/**
 * Returns the requested ranges in their order (RFC 9110, 14.1.2). Undefined when the header must be
 * ignored: it has another unit than bytes, is malformed, or requests more than the whole file.
 * Empty when no range can be satisfied.
 */
export function parseRanges(header: string, size: number): ByteRange[] | undefined {
  const [, list] = /^\s*bytes\s*=(.*)$/is.exec(header) ?? [];
  if (list === undefined) return undefined;
  const specs = list
    .split(",")
    .map((spec) => spec.trim())
    .filter((spec) => spec !== "");
  if (specs.length === 0 || specs.length > MAX_RANGES) return undefined;
  const ranges: ByteRange[] = [];
  let total = 0;
  for (const spec of specs) {
    const [, first, last] = /^(\d*)\s*-\s*(\d*)$/.exec(spec) ?? [];
    if (first === undefined || last === undefined || first + last === "") return undefined;
    if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
    const range =
      first === ""
        ? { first: Math.max(0, size - Number(last)), last: size - 1 }
        : { first: Number(first), last: last === "" ? size - 1 : Math.min(Number(last), size - 1) };
    if (range.first > range.last) continue;
    ranges.push(range);
    total += range.last - range.first + 1;
  }
  return total > size ? undefined : ranges;
}

/** A body of several ranges: its type, its length and its bytes (RFC 9110 14.6). */
export interface SeveralRanges<Piece> {
  readonly type: string;
  readonly length: number;
  readonly body: AsyncGenerator<Piece | Buffer, void, undefined>;
}

/**
 * Builds a body of several ranges. `read` returns the bytes of a range; the ranges are read one
 * after the other, as they are sent.
 */
export function severalRanges<Piece extends Uint8Array>(
  size: number,
  type: string,
  ranges: readonly ByteRange[],
  read: (range: ByteRange) => AsyncIterable<Piece>,
): SeveralRanges<Piece> {
  const boundary = randomBytes(12).toString("hex");
  const parts = ranges.map((range, at) => {
    const position = `bytes ${range.first}-${range.last}/${size}`;
    const start = at === 0 ? "" : "\r\n";
    return { range, head: `${start}--${boundary}\r\nContent-Type: ${type}\r\nContent-Range: ${position}\r\n\r\n` };
  });
  const end = `\r\n--${boundary}--\r\n`;
  const length = parts.reduce((sum, { range, head }) => sum + head.length + range.last - range.first + 1, end.length);

  async function* content(): AsyncGenerator<Piece | Buffer, void, undefined> {
    for (const { range, head } of parts) {
      yield Buffer.from(head, "latin1");
      yield* read(range);
    }
    yield Buffer.from(end, "latin1");
  }
  return { type: `multipart/byteranges; boundary=${boundary}`, length, body: content() };
}

/**
 * Builds a body of several ranges of a file. The file is opened when the first bytes are requested,
 * so that a response that is never sent opens none.
 */
export function byteRanges(
  { path, stats }: KnownFile,
  type: string,
  ranges: readonly ByteRange[],
): SeveralRanges<Buffer> {
  const opened: { file?: FileHandle } = {};
  const several = severalRanges(stats.size, type, ranges, async function* ({ first, last }) {
    yield* (opened.file as FileHandle).createReadStream({ start: first, end: last, autoClose: false });
  });

  async function* content(): AsyncGenerator<Buffer, void, undefined> {
    opened.file = await open(path, PLAIN_READ);
    try {
      const { size, mtimeMs } = await opened.file.stat();
      if (size !== stats.size || mtimeMs !== stats.mtimeMs) throw new Error(`${path} changed while it was being sent`);
      yield* several.body;
    } finally {
      await opened.file.close();
    }
  }
  return { ...several, body: content() };
}
