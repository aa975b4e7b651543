/** Reads headers of tar archives (V7, USTAR, PAX and GNU) as Go's archive/tar does. */
import { failure } from "../../util/errors.ts";

export const blockSize = 512;

/** Whole seconds since 1970, and the nanoseconds after them. */
export interface TarTime {
  readonly seconds: number;
  readonly nanoseconds: number;
}

/** Header formats as bits of a set; 0 means unknown. */
export const ustarFormat = 2;
export const paxFormat = 4;
export const gnuFormat = 8;

/** Texts contain one character per byte. */
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
  /** Records of the preceding PAX header. */
  records: ReadonlyMap<string, string>;
  format: number;
}

export const invalidHeader = () => failure("TAR_INVALID", { reason: "archive/tar: invalid tar header" });
export const fieldTooLong = () => failure("TAR_INVALID", { reason: "archive/tar: header field too long" });

const noRecords: ReadonlyMap<string, string> = new Map();

/** Returns a header with this type and name, and with nothing else set. */
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

/** Links, devices, directories and pipes have no data, whatever their size field says. */
export const isHeaderOnly = (type: string): boolean => /^[1-6]$/.test(type);

/** Offset and length of each field in a header block. */
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

type TarField = keyof typeof fieldPositions;

const fieldOf = (block: Buffer, name: TarField): Buffer => {
  const [at, length] = fieldPositions[name];
  return block.subarray(at, at + length);
};

const latin1 = (bytes: Buffer): string => bytes.toString("latin1");

/** Returns a text field up to its first NUL. */
function textIn(block: Buffer, name: TarField): string {
  const field = fieldOf(block, name);
  const end = field.indexOf(0);
  return latin1(end < 0 ? field : field.subarray(0, end));
}

const numberIn = (block: Buffer, name: TarField): number => numberOf(fieldOf(block, name));

/** Reads octal digits, or a binary number if the first bit is set. @throws NodeError */
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

/**
 * Returns the sum of the bytes of a block, or of a beginning of it. The checksum field counts as
 * spaces.
 */
export function checksum(block: Uint8Array): number {
  const [from, length] = fieldPositions.checksum;
  let sum = length * 0x20;
  // An index loop is faster than an iterator, and every file of an archive has a header.
  for (let at = 0; at < block.length; at += 1) {
    if (at === from) at += length;
    sum += block[at] as number;
  }
  return sum;
}

/** Returns the checksum as written by programs that treat bytes as signed. */
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

/** Reads the fields that differ between formats, and returns the prefix of the name. */
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
      // Some programs write a prefix where GNU tar stores these times.
      header.atime = undefined;
      const prefix = textIn(block, "prefix");
      return isAscii(prefix) ? prefix : "";
    }
  },
};

const gnuTime = (block: Buffer, name: "gnuAtime" | "gnuCtime"): TarTime | undefined =>
  fieldOf(block, name)[0] === 0 ? undefined : time(numberIn(block, name));

// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what is looked for
export const isAscii = (text: string): boolean => !/[\x00\x80-\uffff]/.test(text);

const numbers = ["size", "mode", "uid", "gid", "mtime", "devmajor", "devminor"] as const;

/** A block is certainly USTAR only if all text is ASCII and all numbers end with NUL. */
function isStrict(block: Buffer): boolean {
  return block.every((byte) => byte < 0x80) && numbers.every((name) => fieldOf(block, name).at(-1) === 0);
}
