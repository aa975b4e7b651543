/** The dag-pb codec: read as leniently as the reference reads, written in the one canonical form (storage section 2). */
import type { CID } from "multiformats/cid";
import { castCid } from "../cid/text.ts";
import { NodeError } from "../errors.ts";

export interface PbLink {
  readonly name: string;
  /** Cumulative size of what the link leads to, in bytes. */
  readonly size: number;
  readonly cid: CID;
}

export interface PbNode {
  /** Undefined and empty are the same block. */
  readonly data: Uint8Array | undefined;
  readonly links: readonly PbLink[];
}

const text = new TextDecoder();
const empty = new Uint8Array();

// ------------------------------------------------------------------------------------------------------------ wire

const wireVarint = 0;
const wireFixed64 = 1;
const wireBytes = 2;
const wireFixed32 = 5;

/** Protobuf fields of a message, one after the other; no copy is made of any. */
export class FieldReader {
  readonly #bytes: Uint8Array;
  #at = 0;
  /** Of the field read last. */
  field = 0;
  number = 0;
  bytes: Uint8Array = empty;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Reads the next field; false at the end. @throws NodeError when the message is broken */
  next(): boolean {
    if (this.#at >= this.#bytes.length) return false;
    const tag = this.#varint();
    this.field = Math.floor(tag / 8);
    const wire = tag % 8;
    this.number = 0;
    this.bytes = empty;
    if (wire === wireVarint) this.number = this.#varint();
    else if (wire === wireBytes) this.bytes = this.#take(this.#varint());
    else if (wire === wireFixed64) this.#take(8);
    else if (wire === wireFixed32) this.#take(4);
    else throw new NodeError(`proto: illegal wireType ${wire}`);
    if (this.field === 0) throw new NodeError(`proto: illegal tag ${this.field} (wire type ${wire})`);
    return true;
  }

  #varint(): number {
    let value = 0;
    let scale = 1;
    for (let read = 0; read < 10; read += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new NodeError("unexpected EOF");
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new NodeError("proto: integer overflow");
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new NodeError("unexpected EOF");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}

/** Bytes that a number takes as a varint. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length += 1;
  return length;
}

/** Writes a varint and returns the place after it. */
export function writeVarint(into: Uint8Array, at: number, value: number): number {
  let rest = value;
  let place = at;
  while (rest >= 128) {
    into[place++] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
  }
  into[place++] = rest;
  return place;
}

/** Bytes of a length-delimited field with a one-byte tag. */
export const fieldLength = (length: number): number => 1 + varintLength(length) + length;

// ----------------------------------------------------------------------------------------------------------- dag-pb

/** @throws NodeError when the bytes are no dag-pb node */
export function decodePb(bytes: Uint8Array): PbNode {
  try {
    return decodeNode(bytes);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    const reason = `incorrectly formatted merkledag node: unmarshal failed. ${error.message}`;
    throw new NodeError(`failed to decode Protocol Buffers: ${reason}`, { cause: error });
  }
}

function decodeNode(bytes: Uint8Array): PbNode {
  const reader = new FieldReader(bytes);
  const links: PbLink[] = [];
  let data: Uint8Array | undefined;
  while (reader.next()) {
    if (reader.field === 1) data = reader.bytes;
    else if (reader.field === 2) links.push(decodeLink(reader.bytes));
  }
  return { data, links: inOrder(links) };
}

function decodeLink(bytes: Uint8Array): PbLink {
  const reader = new FieldReader(bytes);
  let cid: CID | undefined;
  let name = "";
  let size = 0;
  while (reader.next()) {
    if (reader.field === 1) cid = castCid(reader.bytes);
    else if (reader.field === 2) name = text.decode(reader.bytes);
    else if (reader.field === 3) size = reader.number;
  }
  if (cid === undefined) throw new NodeError("cid too short");
  return { cid, name, size };
}

/** CIDs that a node links to, in order, without decoding more than that. */
export function pbLinks(bytes: Uint8Array): readonly CID[] {
  return decodePb(bytes).links.map(({ cid }) => cid);
}

/** Bytewise by name, stable. */
function inOrder(links: readonly PbLink[]): readonly PbLink[] {
  const sorted = links.every((link, at) => at === 0 || compareNames((links[at - 1] as PbLink).name, link.name) <= 0);
  return sorted ? links : links.toSorted((one, other) => compareNames(one.name, other.name));
}

/** Order of names by their UTF-8 bytes. */
export function compareNames(one: string, other: string): number {
  if (one === other) return 0;
  // Code units order as bytes do, except that surrogates stand for what sorts after U+FFFF.
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const left = one.charCodeAt(at);
    const right = other.charCodeAt(at);
    if (left === right) continue;
    const leftHigh = left >= 0xd800 && left <= 0xdfff;
    const rightHigh = right >= 0xd800 && right <= 0xdfff;
    return leftHigh === rightHigh ? left - right : leftHigh ? 1 : -1;
  }
  return one.length - other.length;
}

/** The canonical bytes: links first, in order of their names, then the data unless it is empty. */
export function encodePb({ data, links }: PbNode): Uint8Array {
  const ordered = inOrder(links);
  const names = ordered.map(({ name }) => Buffer.from(name));
  const lengths = ordered.map(({ cid, size }, at) => linkLength(cid, (names[at] as Buffer).length, size));
  const dataLength = data === undefined || data.length === 0 ? 0 : fieldLength(data.length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + fieldLength(length), dataLength));
  let at = 0;
  for (const [index, { cid, size }] of ordered.entries()) {
    const name = names[index] as Buffer;
    bytes[at++] = 0x12;
    at = writeVarint(bytes, at, lengths[index] as number);
    at = writeField(bytes, at, 0x0a, cid.bytes);
    at = writeField(bytes, at, 0x12, name);
    bytes[at++] = 0x18;
    at = writeVarint(bytes, at, size);
  }
  if (dataLength > 0) writeField(bytes, at, 0x0a, data as Uint8Array);
  return bytes;
}

const linkLength = (cid: CID, nameLength: number, size: number): number =>
  fieldLength(cid.bytes.length) + fieldLength(nameLength) + 1 + varintLength(size);

/** Writes a length-delimited field and returns the place after it. */
export function writeField(into: Uint8Array, at: number, tag: number, value: Uint8Array): number {
  into[at] = tag;
  const from = writeVarint(into, at + 1, value.length);
  into.set(value, from);
  return from + value.length;
}
