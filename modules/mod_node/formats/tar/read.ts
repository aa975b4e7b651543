/** Reads tar archives as they come, entry by entry, with the headers before each entry applied. */
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

/** Bytes of the records before a header, or of a long name. */
const MAX_SPECIAL = 1024 * 1024;

export interface TarEntry {
  readonly header: TarHeader;
  /** For one reader, to be read before the next entry is requested. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Entries in order; what follows the end of the archive is not read. Sparse files are refused.
 *
 * @throws NodeError with Go's text
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void, undefined> {
  const bytes = new Bytes(source);
  try {
    for (let header = await nextHeader(bytes); header !== undefined; header = await nextHeader(bytes)) {
      const length = isHeaderOnly(header.type) || header.type === "g" ? 0 : header.size;
      if (length < 0) throw invalidHeader();
      const body = bytes.stream(length);
      yield { header, body };
      // The unread rest is skipped.
      for await (const _ of body);
      await bytes.skipPadding(length);
    }
  } finally {
    await bytes.close();
  }
}

/** What the headers before an entry have said. */
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
 * The archive ends with two blocks of zeros, or with the end of the source after one of them or
 * none.
 */
async function headerBlock(bytes: Bytes): Promise<Uint8Array | undefined> {
  const block = await bytes.block();
  if (block === undefined || !isZero(block)) return block;
  const second = await bytes.block();
  if (second !== undefined && !isZero(second)) throw invalidHeader();
  return undefined;
}

const isZero = (block: Uint8Array): boolean => block.every((byte) => byte === 0);

/** Undefined for a header that only describes the next one. */
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

/** Reads a source byte by byte. */
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

  /** Whether there is another byte. */
  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#over) {
      const next = await this.#source.next();
      if (next.done === true) this.#over = true;
      else this.#rest = next.value;
    }
    return this.#rest.length > 0;
  }

  /** At most that many of the bytes that have come. */
  #takeUpTo(most: number): Uint8Array {
    const taken = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  /** Undefined at the end. @throws NodeError in the middle of a block */
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

  /** The next bytes as they come. @throws NodeError when they end too early */
  async *stream(length: number): AsyncGenerator<Uint8Array, void, undefined> {
    let left = length;
    while (left > 0) {
      if (!(await this.#fill())) throw failure("TAR_INVALID", { reason: "unexpected EOF" });
      const piece = this.#takeUpTo(left);
      left -= piece.length;
      yield piece;
    }
  }

  /** The last block may be incomplete. */
  async skipPadding(length: number): Promise<void> {
    let left = padding(length);
    while (left > 0 && (await this.#fill())) left -= this.#takeUpTo(left).length;
  }

  /** The text of a special file, one character for each byte. */
  async specialText(length: number): Promise<string> {
    if (length < 0) throw invalidHeader();
    if (length > MAX_SPECIAL) throw fieldTooLong();
    const text = Buffer.from(await this.#exactly(length)).toString("latin1");
    await this.skipPadding(length);
    return text;
  }
}
