/** Writes headers of tar archives as Go does, in the oldest format that can express the header. */
import { posix } from "node:path";
import { failure, type NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import {
  blockSize,
  checksum,
  fieldPositions,
  fieldTooLong,
  gnuFormat,
  isAscii,
  isHeaderOnly,
  paxFormat,
  plainHeader,
  type TarHeader,
  type TarTime,
  ustarFormat,
} from "./header.ts";
import { fieldRecords, isRecord, recordText, sparsePrefix, timeText } from "./pax.ts";

const globalType = "g";
const MAX_NAME = 100;
const MAX_PREFIX = 155;
/** Maximum size in bytes of a PAX header or a long name. */
const MAX_SPECIAL = 1024 * 1024;

/**
 * The header fields of an entry in an archive without owners. Texts have the form of `TarHeader`.
 */
export interface PlainEntry {
  /** "0" file, "2" symlink, "5" directory. */
  readonly type: "0" | "2" | "5";
  readonly name: string;
  readonly linkname: string;
  readonly mode: number;
  readonly size: number;
  readonly mtime: TarTime;
}

/**
 * Returns the same header as `writeHeader`. Most headers are written into `block`, which the caller
 * may reuse for the next header.
 */
export function writeEntry(entry: PlainEntry, block: Buffer): Uint8Array {
  const { type, name, linkname, mode, size, mtime } = entry;
  if (!isSimple(entry)) {
    // Only the PAX format can express the exact time, so it must be requested.
    const format = isWhole(mtime) ? 0 : paxFormat;
    return writeHeader({ ...plainHeader(type, name), linkname, mode, size, mtime, format });
  }
  block.set(emptyEntry);
  put(block, "name", name);
  if (linkname !== "") put(block, "linkname", linkname);
  octal(block, "mode", mode);
  octal(block, "size", size);
  octal(block, "mtime", mtime.seconds);
  block[fieldPositions.type[0]] = type.charCodeAt(0);
  return putSum(block, checksum(block.subarray(0, OWN_BYTES)) + SUM_OF_REST);
}

/** Whether every value fits into its header field. */
const isSimple = ({ type, name, linkname, mode, size, mtime }: PlainEntry): boolean =>
  isShort(name) &&
  isShort(linkname) &&
  fitsOctal(size, 12) &&
  fitsOctal(mode, 8) &&
  isWhole(mtime) &&
  (type === "5" || !name.endsWith("/"));

/** Whether the time is in whole seconds that fit into the header field. */
const isWhole = ({ seconds, nanoseconds }: TarTime): boolean => nanoseconds === 0 && fitsOctal(seconds, 12);

const isShort = (text: string): boolean => text.length <= MAX_NAME && isAscii(text);

/**
 * Returns a header, preceded by the special headers that it needs. For global records the output
 * ends with the records, without padding.
 *
 * @throws NodeError for a header that no format can express
 */
export function writeHeader(given: TarHeader): Uint8Array {
  const header = given.format === 0 ? withoutTimes(given) : given;
  const { formats, records } = choose(header);
  if ((formats & ustarFormat) !== 0) return writeUstar(header);
  return (formats & paxFormat) !== 0 ? writePax(header, records) : writeGnu(header);
}

/** Unless a format is requested, times do not influence which format is chosen. */
function withoutTimes(header: TarHeader): TarHeader {
  const { mtime } = header;
  const seconds = mtime && mtime.seconds + (mtime.nanoseconds >= 5e8 ? 1 : 0);
  return {
    ...header,
    mtime: seconds === undefined ? undefined : { seconds, nanoseconds: 0 },
    atime: undefined,
    ctime: undefined,
  };
}

interface Choice {
  /** The allowed formats that can express the header. */
  readonly formats: number;
  /** Records for the PAX header. */
  readonly records: ReadonlyMap<string, string>;
}

function choose(header: TarHeader): Choice {
  const choice = new FormatChooser(header);
  choice.text("name", "Name", MAX_NAME, "path");
  choice.text("linkname", "Linkname", MAX_NAME, "linkpath");
  choice.text("uname", "Uname", 32, "uname");
  choice.text("gname", "Gname", 32, "gname");
  choice.number("mode", "Mode", 8);
  choice.number("uid", "Uid", 8, "uid");
  choice.number("gid", "Gid", 8, "gid");
  choice.number("size", "Size", 12, "size");
  choice.number("devmajor", "Devmajor", 8);
  choice.number("devminor", "Devminor", 8);
  choice.time("mtime", "ModTime");
  choice.time("atime", "AccessTime");
  choice.time("ctime", "ChangeTime");
  return choice.choice();
}

function unwritten(...reasons: readonly string[]): NodeError {
  const said = reasons.filter((text) => text !== "").join("; and ");
  return failure("TAR_NOT_WRITTEN", { reason: `archive/tar: cannot encode header${said === "" ? "" : `: ${said}`}` });
}

class FormatChooser {
  readonly #header: TarHeader;
  readonly #records = new Map<string, string>();
  readonly #refusals = { [ustarFormat]: "", [paxFormat]: "", [gnuFormat]: "" };
  #formats = ustarFormat | paxFormat | gnuFormat;
  #preferPax = false;

  constructor(header: TarHeader) {
    this.#header = header;
  }

  #exclude(format: 2 | 4 | 8, name: string, value: string): void {
    const word = { [ustarFormat]: "USTAR", [paxFormat]: "PAX", [gnuFormat]: "GNU" }[format];
    this.#refusals[format] = `${word} cannot encode ${name}=${value}`;
    this.#formats &= ~format;
  }

  /**
   * Writes a record if the field cannot hold the value, or if the header already had the record.
   */
  #record(key: string, value: string, needed: boolean): void {
    if (needed || this.#header.records.get(key) === value) this.#records.set(key, value);
  }

  text(field: "name" | "linkname" | "uname" | "gname", name: string, width: number, key: string): void {
    const text = this.#header[field];
    const tooLong = text.length > width;
    const longInGnu = key === "path" || key === "linkpath";
    if (text.includes("\0") || (tooLong && !longInGnu)) this.#exclude(gnuFormat, name, quote(text));
    const specialFile = tooLong || !isAscii(text);
    if (specialFile && !(key === "path" && splitName(text))) this.#exclude(ustarFormat, name, quote(text));
    this.#record(key, text, specialFile);
  }

  number(field: "mode" | "uid" | "gid" | "size" | "devmajor" | "devminor", name: string, width: number, key?: string) {
    const value = this.#header[field];
    if (!fitsBinary(value, width)) this.#exclude(gnuFormat, name, String(value));
    const fits = fitsOctal(value, width);
    if (!fits) {
      this.#exclude(ustarFormat, name, String(value));
      if (key === undefined) this.#exclude(paxFormat, name, String(value));
    }
    if (key !== undefined) this.#record(key, String(value), !fits);
  }

  time(field: "mtime" | "atime" | "ctime", name: string): void {
    const time = this.#header[field];
    if (time === undefined) return;
    const width = 12;
    const fits = fitsOctal(time.seconds, width);
    const isMtime = field === "mtime";
    if (!fitsBinary(time.seconds, width)) this.#exclude(gnuFormat, name, timeText(time));
    if (!isMtime || !fits) this.#exclude(ustarFormat, name, timeText(time));
    const needed = !isMtime || !fits || time.nanoseconds !== 0;
    this.#preferPax ||= needed;
    this.#record(field, timeText(time), needed);
  }

  choice(): Choice {
    const { type, name, size, records, format } = this.#header;
    if (/^[0346S]$/.test(type) && name.endsWith("/")) {
      throw unwritten("filename may not have trailing slash");
    }
    if (/^[xLK]$/.test(type)) {
      throw unwritten("cannot manually encode TypeXHeader, TypeGNULongName, or TypeGNULongLink headers");
    }
    if (!isHeaderOnly(type) && size < 0) throw unwritten("negative size on header-only type");
    let onlyPax = type === globalType ? "only PAX supports TypeXGlobalHeader" : "";
    if (records.size > 0) onlyPax = "only PAX supports PAXRecords";
    if (onlyPax !== "") this.#formats &= paxFormat;
    this.#addRecords(records, type === globalType);
    const wanted = (format & paxFormat) !== 0 && !this.#preferPax ? format | ustarFormat : format;
    const formats = format === 0 ? this.#formats : this.#formats & wanted;
    if (formats === 0) throw this.#refusal(format, onlyPax);
    return { formats, records: this.#records };
  }

  #addRecords(records: ReadonlyMap<string, string>, isGlobal: boolean): void {
    for (const [key, value] of records) {
      if (this.#records.has(key)) continue;
      if (isGlobal || (!fieldRecords.has(key) && !key.startsWith(sparsePrefix))) this.#records.set(key, value);
    }
    for (const [key, value] of this.#records) {
      if (!isRecord(key, value)) throw unwritten(`invalid PAX record: ${quote(`${key} = ${value}`)}`);
    }
  }

  #refusal(format: number, onlyPax: string): NodeError {
    const { [ustarFormat]: ustar, [paxFormat]: pax, [gnuFormat]: gnu } = this.#refusals;
    if (format === ustarFormat) return unwritten("Format specifies USTAR", ustar, onlyPax);
    if (format === paxFormat) return unwritten("Format specifies PAX", pax);
    if (format === gnuFormat) return unwritten("Format specifies GNU", gnu, onlyPax);
    return unwritten(ustar, pax, gnu, onlyPax);
  }
}

/** Whether a number fits as octal digits followed by a NUL. */
const fitsOctal = (value: number, width: number): boolean => value >= 0 && value < 8 ** (width - 1);
const fitsBinary = (value: number, width: number): boolean =>
  width >= 9 || (value >= -(2 ** (8 * (width - 1))) && value < 2 ** (8 * (width - 1)));

/** Splits a long name at a slash, as far to the right as possible. */
function splitName(name: string): readonly [prefix: string, name: string] | undefined {
  if (name.length <= MAX_NAME || !isAscii(name)) return undefined;
  const end = name.length > MAX_PREFIX + 1 ? MAX_PREFIX + 1 : name.endsWith("/") ? name.length - 1 : name.length;
  const at = name.lastIndexOf("/", end - 1);
  const rest = name.length - at - 1;
  if (at <= 0 || rest === 0 || rest > MAX_NAME) return undefined;
  return [name.slice(0, at), name.slice(at + 1)];
}

function writeUstar(header: TarHeader): Uint8Array {
  const [prefix, name] = splitName(header.name) ?? ["", header.name];
  const block = fields({ ...header, name }, octal, (text) => text);
  put(block, "prefix", prefix);
  return withChecksum(block, "ustar\x0000");
}

function writePax(header: TarHeader, records: ReadonlyMap<string, string>): Uint8Array {
  const isGlobal = header.type === globalType;
  const parts: Uint8Array[] = [];
  if (records.size > 0 || isGlobal) {
    const keys = [...records.keys()].sort();
    const text = keys.map((key) => recordText(key, records.get(key) as string)).join("");
    const name = isGlobal ? header.name || "GlobalHead.0.0" : paxHeaderName(header.name);
    const whole = special(name, isGlobal ? globalType : "x", text, "ustar\x0000");
    parts.push(isGlobal ? whole.subarray(0, blockSize + text.length) : whole);
  }
  if (!isGlobal) parts.push(withChecksum(fields(header, octal, toAscii), "ustar\x0000"));
  return Buffer.concat(parts);
}

/** Returns the name of the PAX header that precedes an entry. */
function paxHeaderName(name: string): string {
  const at = name.lastIndexOf("/") + 1;
  const joined = posix.join(name.slice(0, at), "PaxHeaders.0", name.slice(at));
  return joined.length > 1 ? joined.replace(/\/$/, "") : joined;
}

function writeGnu(header: TarHeader): Uint8Array {
  const long = (text: string, type: string) =>
    text.length > MAX_NAME ? [special("././@LongLink", type, `${text}\0`, "ustar  \0")] : [];
  const block = fields(header, binary, (text) => text);
  const { atime, ctime } = header;
  if (atime !== undefined) binary(block, "gnuAtime", atime.seconds);
  if (ctime !== undefined) binary(block, "gnuCtime", ctime.seconds);
  return Buffer.concat([...long(header.name, "L"), ...long(header.linkname, "K"), withChecksum(block, "ustar  \0")]);
}

type Numeric = "mode" | "uid" | "gid" | "size" | "mtime" | "devmajor" | "devminor" | "gnuAtime" | "gnuCtime";
type PutNumber = (block: Buffer, field: Numeric, value: number) => void;

function fields(header: TarHeader, number: PutNumber, text: (text: string) => string): Buffer {
  // Allocated from Node's pool, unlike `Buffer.alloc`, because an archive has many headers.
  const block = Buffer.allocUnsafe(blockSize).fill(0);
  for (const field of ["name", "linkname", "uname", "gname"] as const) put(block, field, text(header[field]));
  for (const field of ["mode", "uid", "gid", "size", "devmajor", "devminor"] as const) {
    number(block, field, header[field]);
  }
  number(block, "mtime", header.mtime?.seconds ?? 0);
  block.write(header.type, fieldPositions.type[0], "latin1");
  return block;
}

/** Writes a text field. A value that does not fit is cut, and loses slashes at its end. */
function put(block: Buffer, field: keyof typeof fieldPositions, text: string): void {
  const [at, width] = fieldPositions[field];
  block.write(text, at, width, "latin1");
  if (text.length <= width || text[width - 1] !== "/") return;
  block[at + text.slice(0, width - 1).replace(/\/+$/, "").length] = 0;
}

/** Writes 0 for a value that does not fit, because a record contains it. */
const octal: PutNumber = (block, field, value) => {
  const [at, width] = fieldPositions[field];
  putOctal(block, at, width - 1, fitsOctal(value, width) ? value : 0);
};

function putOctal(block: Buffer, at: number, digits: number, value: number): void {
  let rest = value;
  // Converting through a string is slower, and each header has nine numbers.
  for (let digit = at + digits - 1; digit >= at; digit -= 1) {
    block[digit] = 0x30 + (rest % 8);
    rest = Math.floor(rest / 8);
  }
}

const binary: PutNumber = (block, field, value) => {
  const [at, width] = fieldPositions[field];
  if (fitsOctal(value, width) || !fitsBinary(value, width)) {
    octal(block, field, value);
    return;
  }
  let rest = BigInt(value);
  for (let offset = width - 1; offset >= 0; offset -= 1) {
    block[at + offset] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  block[at] = (block[at] as number) | 0x80;
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for
const toAscii = (text: string): string => text.replace(/[\x00\x80-\uffff]/g, "");

/** Returns a special entry, which describes the entry after it. @throws NodeError */
function special(name: string, type: string, data: string, magic: string): Uint8Array {
  if (data.length > MAX_SPECIAL) throw fieldTooLong();
  const block = Buffer.alloc(blockSize);
  put(block, "name", toAscii(name).slice(0, MAX_NAME).replace(/\/+$/, ""));
  for (const field of ["mode", "uid", "gid", "mtime"] as const) octal(block, field, 0);
  octal(block, "size", data.length);
  block.write(type, fieldPositions.type[0], "latin1");
  const body = Buffer.alloc(data.length + padding(data.length));
  body.write(data, "latin1");
  return Buffer.concat([withChecksum(block, magic), body]);
}

function withChecksum(block: Buffer, magic: string): Buffer {
  block.write(magic, fieldPositions.magic[0], "latin1");
  return withSum(block);
}

const withSum = (block: Buffer): Buffer => putSum(block, checksum(block));

function putSum(block: Buffer, sum: number): Buffer {
  const [at] = fieldPositions.checksum;
  putOctal(block, at, 6, sum);
  block[at + 6] = 0;
  block[at + 7] = 0x20;
  return block;
}

/** A header with everything that is the same in all headers of plain entries. */
const emptyEntry = withChecksum(fields(plainHeader("0", ""), octal, String), "ustar\x0000");
/** Number of bytes at the start of a header that differ between plain entries. */
const OWN_BYTES = fieldPositions.linkname[0] + fieldPositions.linkname[1];
const SUM_OF_REST = checksum(emptyEntry) - checksum(emptyEntry.subarray(0, OWN_BYTES));

/** Number of bytes from the end of the content to the end of its last block. */
export const padding = (length: number): number => (blockSize - (length % blockSize)) % blockSize;
