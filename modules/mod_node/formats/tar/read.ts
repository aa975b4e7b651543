/**
 * Reads tar archives as a stream, entry by entry, and applies the special headers before each
 * entry.
 */
import { failure } from "../../util/errors.ts";
import {
  blockSize,
  fieldTooLong,
  gnuFormat,
  invalidHeader,
  isHeaderOnly,
  paxFormat,
  plainHeader,
  readHeader,
  type TarHeader,
  ustarFormat,
} from "./header.ts";
import { mergeRecords, readRecords, sparsePrefix } from "./pax.ts";
import { padding } from "./write.ts";

/** Maximum size in bytes of a PAX header or a long name. */
const MAX_SPECIAL = 1024 * 1024;

export interface TarEntry {
  readonly header: TarHeader;
  /** The content. It can be read once, before the next entry is requested. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Yields the entries in order. Bytes after the end of the archive are not read. Sparse files are
 * rejected.
 *
 * @throws NodeError with the error text of Go
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void, undefined> {
  const bytes = new Bytes(source);
  try {
    for (let header = await nextHeader(bytes); header !== undefined; header = await nextHeader(bytes)) {
      const length = isHeaderOnly(header.type) || header.type === "g" ? 0 : header.size;
      if (length < 0) throw invalidHeader();
      const body = bytes.stream(length);
      yield { header, body };
      // Skips the content that the caller has not read.
      for await (const _ of body);
      await bytes.skipPadding(length);
    }
  } finally {
    await bytes.close();
  }
}

/** Values from the special headers that precede an entry. */
interface Pending {
  records: ReadonlyMap<string, string>;
  longName: string;
  longLink: string;
  format: number;
}

async function nextHeader(bytes: Bytes): Promise<TarHeader | undefined> {
  const ahead: Pending = {
    records: new Map(),
    longName: "",
    longLink: "",
    format: ustarFormat | paxFormat | gnuFormat,
  };
  for (;;) {
    const block = await headerBlock(bytes);
    if (block === undefined) return undefined;
    const header = readHeader(block);
    ahead.format &= header.format;
    const whole = await applyHeader(header, ahead, bytes);
    if (whole !== undefined) return whole;
  }
}

/**
 * Returns undefined at the end of the archive: after two blocks of zeros, or if the source ends
 * after at most one such block.
 */
async function headerBlock(bytes: Bytes): Promise<Uint8Array | undefined> {
  const block = await bytes.block();
  if (block === undefined || !isZero(block)) return block;
  const second = await bytes.block();
  if (second !== undefined && !isZero(second)) throw invalidHeader();
  return undefined;
}

const isZero = (block: Uint8Array): boolean => block.every((byte) => byte === 0);

/** Returns undefined for a header that only describes the next entry. */
async function applyHeader(header: TarHeader, ahead: Pending, bytes: Bytes): Promise<TarHeader | undefined> {
  switch (header.type) {
    case "x":
      ahead.format &= paxFormat;
      ahead.records = readRecords(await bytes.specialText(header.size));
      return undefined;
    case "g": {
      ahead.format &= paxFormat;
      const whole = plainHeader("g", header.name);
      mergeRecords(header, readRecords(await bytes.specialText(header.size)));
      return { ...whole, name: header.name, records: header.records, format: ahead.format };
    }
    case "L":
    case "K": {
      ahead.format &= gnuFormat;
      const text = (await bytes.specialText(header.size)).split("\0", 1)[0] as string;
      ahead[header.type === "L" ? "longName" : "longLink"] = text;
      return undefined;
    }
    default:
      return complete(header, ahead);
  }
}

function complete(header: TarHeader, { records, longName, longLink, format }: Pending): TarHeader {
  mergeRecords(header, records);
  if (longName !== "") header.name = longName;
  if (longLink !== "") header.linkname = longLink;
  if (header.type === "\0") header.type = header.name.endsWith("/") ? "5" : "0";
  const sparse = header.type === "S" || [...records.keys()].some((key) => key.startsWith(sparsePrefix));
  if (sparse)
    throw failure("TAR_INVALID", {
      reason: "archive/tar: sparse files are not supported: pack the archive without --sparse",
    });
  header.format = (format & ustarFormat) !== 0 && (format & paxFormat) !== 0 ? format & ustarFormat : format;
  return header;
}

/** Reads a source in blocks of any size. */
class Bytes {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();
  #over = false;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async close(): Promise<void> {
    if (!this.#over) await this.#source.return?.();
  }

  /** Whether another byte is available. */
  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#over) {
      const next = await this.#source.next();
      if (next.done === true) this.#over = true;
      else this.#rest = next.value;
    }
    return this.#rest.length > 0;
  }

  /** Returns at most `most` of the bytes that have arrived. */
  #takeUpTo(most: number): Uint8Array {
    const taken = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  /**
   * Returns undefined at the end of the source.
   *
   * @throws NodeError if the source ends within a block
   */
  async block(): Promise<Uint8Array | undefined> {
    if (!(await this.#fill())) return undefined;
    return this.#exactly(blockSize);
  }

  async #exactly(length: number): Promise<Uint8Array> {
    if (this.#rest.length >= length) return this.#takeUpTo(length);
    const pieces: Uint8Array[] = [];
    for await (const piece of this.stream(length)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** Yields the next bytes as they arrive. @throws NodeError if the source ends too early */
  async *stream(length: number): AsyncGenerator<Uint8Array, void, undefined> {
    let left = length;
    while (left > 0) {
      if (!(await this.#fill())) throw failure("TAR_INVALID", { reason: "unexpected EOF" });
      const piece = this.#takeUpTo(left);
      left -= piece.length;
      yield piece;
    }
  }

  /** Skips the padding after a file. The last block of the source may be incomplete. */
  async skipPadding(length: number): Promise<void> {
    let left = padding(length);
    while (left > 0 && (await this.#fill())) left -= this.#takeUpTo(left).length;
  }

  /** Returns the content of a special entry, one character per byte. */
  async specialText(length: number): Promise<string> {
    if (length < 0) throw invalidHeader();
    if (length > MAX_SPECIAL) throw fieldTooLong();
    const text = Buffer.from(await this.#exactly(length)).toString("latin1");
    await this.skipPadding(length);
    return text;
  }
}
