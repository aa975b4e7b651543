/** The dag-pb codec: read as leniently as the reference reads, written in the one canonical form (storage section 2). */
import type { CID } from "multiformats/cid";
import { NodeError } from "../../util/errors.ts";
import { castCid } from "../cid/text.ts";
import { FieldReader, fieldLength, type Message, wireBytes, wireVarint, writeField } from "../protobuf/fields.ts";
import { varintLength, writeVarint } from "../protobuf/varint.ts";
import { scanLinks } from "./scan_links.ts";

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

/** A block and all below it, in bytes, by what its links say: the Tsize of links to it. */
export const cumulativeSize = ({ length, links }: Pick<PbNode, "links"> & { readonly length: number }): number =>
  links.reduce((sum, { size }) => sum + size, length);

const text = new TextDecoder("utf-8", { ignoreBOM: true });
const empty = new Uint8Array();

/** A block. @throws NodeError when the bytes are no dag-pb node */
export function decodePb(bytes: Uint8Array): PbNode {
  try {
    return parsePb(bytes);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw new NodeError(`failed to decode Protocol Buffers: ${error.message}`, { cause: error });
  }
}

/** Bytes that come from elsewhere. @throws NodeError when they are no dag-pb node */
export function parsePb(bytes: Uint8Array): PbNode {
  const links: PbLink[] = [];
  let fault: NodeError | undefined;
  const data = fieldsOf(bytes, (link) => {
    try {
      links.push(decodeLink(link, links.length));
    } catch (error) {
      if (!(error instanceof BadHash)) throw error;
      fault ??= error;
    }
  });
  // It is told when the whole is known to be a message.
  if (fault !== undefined) throw new NodeError(`incorrectly formatted merkledag node: ${fault.message}`);
  return { data, links: inOrder(links) };
}

/** A link whose CID is none. */
class BadHash extends NodeError {}

/** The data of a node, after the messages of its links. */
function fieldsOf(bytes: Uint8Array, take: (link: Uint8Array) => void): Uint8Array | undefined {
  try {
    const reader = new FieldReader(bytes, nodeMessage);
    let data: Uint8Array | undefined;
    while (reader.next()) {
      if (reader.field === 1) data = reader.bytes;
      else if (reader.field === 2) take(reader.bytes);
    }
    return data;
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw new NodeError(`incorrectly formatted merkledag node: unmarshal failed. ${error.message}`, { cause: error });
  }
}

const nodeMessage: Message = { name: "PBNode", fields: { 1: ["Data", wireBytes], 2: ["Links", wireBytes] } };
const linkMessage: Message = {
  name: "PBLink",
  fields: { 1: ["Hash", wireBytes], 2: ["Name", wireBytes], 3: ["Tsize", wireVarint] },
};

/** The message of one link, which is the `at`th of its node. @throws NodeError */
export function decodeLink(bytes: Uint8Array, at = 0): PbLink {
  const reader = new FieldReader(bytes, linkMessage);
  let hash: Uint8Array = empty;
  let name = "";
  let size = 0;
  while (reader.next()) {
    if (reader.field === 1) hash = reader.bytes;
    else if (reader.field === 2) name = text.decode(reader.bytes);
    else if (reader.field === 3) size = reader.number;
  }
  return { cid: linkCid(hash, at), name, size };
}

function linkCid(hash: Uint8Array, at: number): CID {
  try {
    return castCid(hash);
  } catch (error) {
    throw new BadHash(`link hash #${at} is not valid multihash. ${(error as Error).message}`, { cause: error });
  }
}

/** The data of a node, its links unread. @throws NodeError when the bytes are no dag-pb node */
export function pbData(bytes: Uint8Array): Uint8Array | undefined {
  const reader = new FieldReader(bytes, nodeMessage);
  let data: Uint8Array | undefined;
  while (reader.next()) if (reader.field === 1) data = reader.bytes;
  return data;
}

/** CIDs that a node links to, in order. @throws NodeError when the bytes are no dag-pb node */
export const pbLinks = (bytes: Uint8Array): readonly CID[] =>
  scanLinks(bytes) ?? decodePb(bytes).links.map(({ cid }) => cid);

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
    at = writeLink(bytes, at, cid, name, size);
  }
  if (dataLength > 0) writeField(bytes, at, 0x0a, data as Uint8Array);
  return bytes;
}

/** The field of one link as it stands in its node. */
export function encodeLink({ cid, name, size }: PbLink): Uint8Array {
  const text = Buffer.from(name);
  const length = linkLength(cid, text.length, size);
  const bytes = new Uint8Array(fieldLength(length));
  bytes[0] = 0x12;
  writeLink(bytes, writeVarint(bytes, 1, length), cid, text, size);
  return bytes;
}

function writeLink(into: Uint8Array, from: number, cid: CID, name: Uint8Array, size: number): number {
  let at = writeField(into, from, 0x0a, cid.bytes);
  at = writeField(into, at, 0x12, name);
  into[at++] = 0x18;
  return writeVarint(into, at, size);
}

const linkLength = (cid: CID, nameLength: number, size: number): number =>
  fieldLength(cid.bytes.length) + fieldLength(nameLength) + 1 + varintLength(size);
