/**
 * The format of a segment: a file of the "CARv1 specification" that any CAR reader can read. Blocks
 * are ordinary sections. Everything else that is needed to rebuild the index is in records. A
 * record is a section with an identity CID that contains the record, and with the same bytes as
 * data. Identity CIDs never come from outside, because `BlockService` does not store them.
 *
 * Reading all segments in the order of their numbers restores the index:
 * - a section means that the bytes of this multihash are here (the last such section counts), and
 *   that this form is stored;
 * - a record means, for each of its multihashes, that exactly these forms are stored from here on.
 *   A record without forms is a tombstone: the block was deleted.
 */

import { varint } from "multiformats";
import type { CID } from "multiformats/cid";
import { decode as decodeDigest } from "multiformats/hashes/digest";
import { dagPb } from "../../../formats/cid/codecs.ts";
import { makeCid } from "../../../formats/cid/make.ts";
import { ownBytes } from "../../../util/own_bytes.ts";

/** The location of a block, as readers need it. */
export interface BytesLocation {
  readonly segment: number;
  /** Offset of the first data byte in the file. */
  readonly offset: number;
  readonly length: number;
  /** The data itself, until it is in the file. */
  bytes?: Uint8Array | undefined;
  /** Called when the data is in the file and the array may be overwritten. */
  readonly release?: (() => void) | undefined;
}

/** The location of a block. */
export interface BlockLocation extends BytesLocation {
  /** Bytes of the section before the data. */
  readonly headLength: number;
}

/**
 * Version and codec of a CID as one number: 0 is version 0, any other number is the codec of
 * version 1 plus one.
 */
export type Form = number;

export const formOf = ({ version, code }: CID): Form => (version === 0 ? 0 : code + 1);

/** Returns the CID of a form. `multihash` must not be changed afterwards. */
export function cidOf(form: Form, multihash: Uint8Array): CID {
  const digest = decodeDigest(multihash);
  return form === 0 ? makeCid(0, dagPb, digest) : makeCid(1, form - 1, digest);
}

/** Returns a multihash as the key of a map. */
export const keyOf = ({ buffer, byteOffset, length }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, length).toString("latin1");

/**
 * The header of every segment: version 1 and one root, the empty identity CID `bafkqaaa`, because
 * some readers refuse a file without roots.
 */
export const segmentHeader = Buffer.from("19a265726f6f747381d82a4500015500006776657273696f6e01", "hex");

const segmentName = /^(\d{8})\.car$/;
export const nameOf = (segment: number): string => `${String(segment).padStart(8, "0")}.car`;
export const numberOf = (name: string): number | undefined => {
  const digits = segmentName.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

/**
 * A position in the log as one growing number that combines segment and offset. Offsets stay below
 * 2^32, so a store can write two million segments in its life.
 */
export type Position = number;

const positionsOfSegment = 2 ** 32;
export const positionAt = (segment: number, offset: number): Position => segment * positionsOfSegment + offset;
export const segmentAt = (position: Position): number => Math.floor(position / positionsOfSegment);
export const offsetAt = (position: Position): number => position % positionsOfSegment;

/** Returns the bytes of a section before its data. */
export function sectionHead(cid: Uint8Array, dataLength: number): Uint8Array {
  const section = cid.length + dataLength;
  const prefix = varint.encodingLength(section);
  const head = Buffer.allocUnsafe(prefix + cid.length);
  varint.encodeTo(section, head);
  head.set(cid, prefix);
  return head;
}

/** The decoded head of a section. `multihash` is a view. */
export interface Section {
  readonly headLength: number;
  readonly length: number;
  readonly form: Form;
  readonly multihash: Uint8Array;
}

export const MAX_HEAD = 16 * 1024;
/** No block is nearly that long, so a greater length is garbage. */
const MAX_SECTION = 2 ** 31;

/**
 * Reads the head of a section; undefined when it is truncated.
 * @throws Error when it cannot be a section
 */
export function readSection(bytes: Uint8Array, at: number): Section | undefined {
  try {
    const [section, prefix] = varint.decode(bytes, at);
    if (section === 0 || section > MAX_SECTION) throw new Error("this is not the length of a section");
    const start = at + prefix;
    // Truncated in the bytes that distinguish a CID of version 0 from others.
    if (bytes[start] === 0x12 && start + 1 === bytes.length) return undefined;
    const legacy = bytes[start] === 0x12 && bytes[start + 1] === 0x20;
    let end = start;
    let form = 0;
    if (!legacy) {
      const [version, versionBytes] = varint.decode(bytes, start);
      if (version !== 1) throw new Error("this is not a CID");
      const [codec, codecBytes] = varint.decode(bytes, start + versionBytes);
      form = codec + 1;
      end += versionBytes + codecBytes;
    }
    const hash = end;
    const [, codeBytes] = varint.decode(bytes, end);
    const [digest, digestBytes] = varint.decode(bytes, end + codeBytes);
    end += codeBytes + digestBytes + digest;
    if (end - start > section || end - at > MAX_HEAD) throw new Error("this is not a CID");
    if (end > bytes.length) return undefined;
    return { headLength: end - at, length: section - (end - start), form, multihash: bytes.subarray(hash, end) };
  } catch (error) {
    // A truncated varint.
    if (error instanceof RangeError && bytes.length - at < MAX_HEAD) return undefined;
    throw error;
  }
}

/** The statement of a record about one multihash. */
export interface Statement {
  readonly multihash: Uint8Array;
  readonly forms: readonly Form[];
}

export interface RecordSection {
  readonly bytes: Uint8Array;
  readonly tombstones: boolean;
  readonly statements: readonly Statement[];
}

/** Maximum bytes of a multihash, which is a key of the index. */
export const MAX_MULTIHASH = 1978;
const identityPrefix = Uint8Array.of(1, 0x55, 0);
const MAX_RECORD = 4096;

/**
 * Encodes statements as whole sections (head and data). A section has either only tombstones or
 * only stored blocks.
 */
export function recordSections(statements: readonly Statement[]): RecordSection[] {
  const sections: RecordSection[] = [];
  for (const tombstones of [false, true]) {
    let parts: Uint8Array[] = [];
    let size = 0;
    let made: Statement[] = [];
    const close = () => {
      if (size > 0) sections.push({ bytes: recordSection(Buffer.concat(parts, size)), tombstones, statements: made });
      parts = [];
      size = 0;
      made = [];
    };
    for (const statement of statements) {
      const { multihash, forms } = statement;
      if ((forms.length === 0) !== tombstones) continue;
      const said = [varints([multihash.length]), multihash, varints([forms.length, ...forms])];
      const length = said.reduce((sum, part) => sum + part.length, 0);
      if (size + length > MAX_RECORD) close();
      parts.push(...said);
      size += length;
      made.push(statement);
    }
    close();
  }
  return sections;
}

/** Encodes numbers as consecutive varints. */
export function varints(numbers: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(numbers.reduce((sum, number) => sum + varint.encodingLength(number), 0));
  let at = 0;
  for (const number of numbers) {
    varint.encodeTo(number, bytes, at);
    at += varint.encodingLength(number);
  }
  return bytes;
}

/** Reads consecutive varints. */
export class Varints {
  readonly bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  next = (): number => {
    // Most numbers are below 128.
    const first = this.bytes[this.at] as number;
    if (first < 0x80) {
      this.at += 1;
      return first;
    }
    const [number, length] = varint.decode(this.bytes, this.at);
    this.at += length;
    return number;
  };
}

function recordSection(payload: Uint8Array): Uint8Array {
  const cid = Buffer.concat([identityPrefix, varints([payload.length]), payload]);
  return Buffer.concat([sectionHead(cid, payload.length), payload]);
}

/** Whether a section is a record, not a block. */
export const isRecord = ({ multihash }: Section): boolean => multihash[0] === 0;

/**
 * Returns the statements of a record; undefined for a block.
 * @throws Error for invalid statements: bytes of a block may look like a record
 */
export function readRecord(section: Section): Statement[] | undefined {
  if (!isRecord(section)) return undefined;
  const { multihash } = section;
  const read = new Varints(multihash, 1);
  read.next();
  const statements: Statement[] = [];
  while (read.at < multihash.length) {
    const length = read.next();
    const hash = ownBytes(multihash.subarray(read.at, (read.at += length)));
    if (length > MAX_MULTIHASH || decodeDigest(hash).code === 0) throw new Error("no block has this multihash");
    const count = read.next();
    if (count > multihash.length - read.at) throw new Error("a record is truncated");
    statements.push({ multihash: hash, forms: Array.from({ length: count }, read.next) });
  }
  return statements;
}
