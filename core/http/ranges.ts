import { randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import { open } from "node:fs/promises";
/** A file and what was known of it when the answer began. */
export interface KnownFile {
  readonly path: string;
  readonly stats: Stats;
}

/** Bytes from `first` to `last`, both included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** More ranges than this are no honest request: the whole file is sent. */
const MAX_RANGES = 100;

/**
 * The ranges asked for, in the order asked (RFC 9110 14.1.2). Undefined: the header is to be ignored, since it is none
 * that bytes have, malformed, or asks for more than the whole. Empty: none can be satisfied.
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

/** An answer of several ranges: type, length and bytes of a multipart/byteranges body (RFC 9110 14.6). */
export function byteRanges({ path, stats }: KnownFile, type: string, ranges: readonly ByteRange[]) {
  const boundary = randomBytes(12).toString("hex");
  const parts = ranges.map((range, at) => {
    const position = `bytes ${range.first}-${range.last}/${stats.size}`;
    const start = at === 0 ? "" : "\r\n";
    return { range, head: `${start}--${boundary}\r\nContent-Type: ${type}\r\nContent-Range: ${position}\r\n\r\n` };
  });
  const end = `\r\n--${boundary}--\r\n`;
  const length = parts.reduce((sum, { range, head }) => sum + head.length + range.last - range.first + 1, end.length);

  /** Opens the file when the first bytes are asked for, so that an answer that is never sent holds none. */
  async function* content(): AsyncGenerator<Buffer, void, undefined> {
    const file = await open(path);
    try {
      const { size, mtimeMs } = await file.stat();
      if (size !== stats.size || mtimeMs !== stats.mtimeMs) throw new Error(`${path} changed while it was being sent`);
      for (const { range, head } of parts) {
        yield Buffer.from(head, "latin1");
        yield* file.createReadStream({ start: range.first, end: range.last, autoClose: false });
      }
      yield Buffer.from(end, "latin1");
    } finally {
      await file.close();
    }
  }
  return { type: `multipart/byteranges; boundary=${boundary}`, length, body: content() };
}
