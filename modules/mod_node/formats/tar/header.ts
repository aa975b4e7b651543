/** Reads headers of tar archives (V7, USTAR, PAX and GNU), as Go's reader does. */
import { failure } from "../../util/errors.ts";

export const blockSize = 512;

/** Seconds since the epoch, and the fraction. */
export interface TarTime {
  readonly seconds: number;
  readonly nanoseconds: number;
}

/** Header formats as bits of a set; 0 is unknown. */
export const ustarFormat = 2;
export const paxFormat = 4;
export const gnuFormat = 8;

/** Texts are their bytes, one character for each byte. */
export interface TarHeader {
  type: string;
  name: string;
  linkname: string;
  size: number;
  mode: number;
  uid: number;
  gid: number;
  uname: string;
  gname: string;
  devmajor: number;
  devminor: number;
  mtime: TarTime | undefined;
  atime: TarTime | undefined;
  ctime: TarTime | undefined;
  /** Records of the PAX header before it. */
  records: ReadonlyMap<string, string>;
  format: number;
}

export const invalidHeader = () => failure("TAR_INVALID", { reason: "archive/tar: invalid tar header" });
export const fieldTooLong = () => failure("TAR_INVALID", { reason: "archive/tar: header field too long" });

const noRecords: ReadonlyMap<string, string> = new Map();

/** A header with that type and name, and nothing else. */
export const plainHeader = (type: string, name: string): TarHeader => ({
  type,
  name,
  linkname: "",
  size: 0,
  mode: 0,
  uid: 0,
  gid: 0,
  uname: "",
  gname: "",
  devmajor: 0,
  devminor: 0,
  mtime: undefined,
  atime: undefined,
  ctime: undefined,
  records: noRecords,
  format: 0,
});

/** Links, devices, directories and pipes have no data, whatever their size says. */
export const isHeaderOnly = (type: string): boolean => /^[1-6]$/.test(type);

/** Offset and length of the fields in a block. */
export const fieldPositions = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  linkname: [157, 100],
  magic: [257, 8],
  uname: [265, 32],
  gname: [297, 32],
  devmajor: [329, 8],
  devminor: [337, 8],
  prefix: [345, 155],
  gnuAtime: [345, 12],
  gnuCtime: [357, 12],
  starPrefix: [345, 131],
  starAtime: [476, 12],
  starCtime: [488, 12],
  starTrailer: [508, 4],
} as const satisfies Record<string, readonly [at: number, length: number]>;

type Place = keyof typeof fieldPositions;

const fieldOf = (block: Buffer, place: Place): Buffer => {
  const [at, length] = fieldPositions[place];
  return block.subarray(at, at + length);
};

const latin1 = (bytes: Buffer): string => bytes.toString("latin1");

/** Up to the first NUL. */
function textIn(block: Buffer, place: Place): string {
  const field = fieldOf(block, place);
  const end = field.indexOf(0);
  return latin1(end < 0 ? field : field.subarray(0, end));
}

const numberIn = (block: Buffer, place: Place): number => numberOf(fieldOf(block, place));

/** Octal digits, or a binary number when the first bit is set. @throws NodeError */
function numberOf(field: Buffer): number {
  if (((field[0] as number) & 0x80) === 0) return octalOf(field);
  const negative = ((field[0] as number) & 0x40) !== 0;
  let value = 0n;
  for (const [at, byte] of field.entries()) {
    const bits = negative ? byte ^ 0xff : byte;
    value = (value << 8n) | BigInt(at === 0 ? bits & 0x7f : bits);
  }
  const number = Number(negative ? -value - 1n : value);
  if (!Number.isSafeInteger(number)) throw invalidHeader();
  return number;
}

function octalOf(field: Buffer): number {
  const text = latin1(field).replace(/^[ \0]+|[ \0]+$/g, "");
  const digits = text.split("\0", 1)[0] as string;
  if (text === "") return 0;
  if (!/^[0-7]{1,17}$/.test(digits)) throw invalidHeader();
  return Number.parseInt(digits, 8);
}

/** The sum of a block's bytes, or of its first ones; the checksum field counts as spaces. */
export function checksum(block: Uint8Array): number {
  const [from, length] = fieldPositions.checksum;
  let sum = length * 0x20;
  // Not by its entries: there is a header for each file of an archive.
  for (let at = 0; at < block.length; at += 1) {
    if (at === from) at += length;
    sum += block[at] as number;
  }
  return sum;
}

/** As some writers have it, for whom bytes have a sign. */
function signedChecksum(block: Uint8Array): number {
  const [from, length] = fieldPositions.checksum;
  const negative = block.filter((byte, at) => byte >= 0x80 && (at < from || at >= from + length)).length;
  return checksum(block) - 0x100 * negative;
}

type Kind = "v7" | "ustar" | "star" | "gnu";

function kindOf(block: Buffer): Kind {
  const sum = octalOf(fieldOf(block, "checksum"));
  if (sum !== checksum(block) && sum !== signedChecksum(block)) throw invalidHeader();
  const magic = latin1(fieldOf(block, "magic"));
  if (magic.startsWith("ustar\0")) return latin1(fieldOf(block, "starTrailer")) === "tar\0" ? "star" : "ustar";
  return magic === "ustar  \0" ? "gnu" : "v7";
}

/** @throws NodeError for a block that is not a header */
export function readHeader(bytes: Uint8Array): TarHeader {
  const block = Buffer.from(bytes.buffer, bytes.byteOffset, blockSize);
  const kind = kindOf(block);
  const header = plainHeader(latin1(fieldOf(block, "type")), textIn(block, "name"));
  header.linkname = textIn(block, "linkname");
  header.size = numberIn(block, "size");
  header.mode = numberIn(block, "mode");
  header.uid = numberIn(block, "uid");
  header.gid = numberIn(block, "gid");
  header.mtime = time(numberIn(block, "mtime"));
  if (kind === "v7") return header;
  header.uname = textIn(block, "uname");
  header.gname = textIn(block, "gname");
  header.devmajor = numberIn(block, "devmajor");
  header.devminor = numberIn(block, "devminor");
  const prefix = extend[kind](header, block);
  if (prefix !== "") header.name = `${prefix}/${header.name}`;
  return header;
}

const time = (seconds: number): TarTime => ({ seconds, nanoseconds: 0 });

/** Reads what differs between kinds; gives the prefix of the name. */
const extend: Readonly<Record<Exclude<Kind, "v7">, (header: TarHeader, block: Buffer) => string>> = {
  ustar(header, block) {
    header.format = isStrict(block) ? ustarFormat | paxFormat : 0;
    return textIn(block, "prefix");
  },
  star(header, block) {
    header.atime = time(numberIn(block, "starAtime"));
    header.ctime = time(numberIn(block, "starCtime"));
    return textIn(block, "starPrefix");
  },
  gnu(header, block) {
    try {
      header.atime = gnuTime(block, "gnuAtime");
      header.ctime = gnuTime(block, "gnuCtime");
      header.format = gnuFormat;
      return "";
    } catch {
      // Some writers have a prefix where GNU has these times.
      header.atime = undefined;
      const prefix = textIn(block, "prefix");
      return isAscii(prefix) ? prefix : "";
    }
  },
};

const gnuTime = (block: Buffer, place: "gnuAtime" | "gnuCtime"): TarTime | undefined =>
  fieldOf(block, place)[0] === 0 ? undefined : time(numberIn(block, place));

// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for
export const isAscii = (text: string): boolean => !/[\x00\x80-\uffff]/.test(text);

const numbers = ["size", "mode", "uid", "gid", "mtime", "devmajor", "devminor"] as const;

/** Only when all text is ASCII and all numbers end with NUL it is certainly USTAR. */
function isStrict(block: Buffer): boolean {
  return block.every((byte) => byte < 0x80) && numbers.every((place) => fieldOf(block, place).at(-1) === 0);
}
