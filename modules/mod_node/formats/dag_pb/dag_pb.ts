/**
 * The dag-pb codec ("DAG-PB specification"). It reads as leniently as go-ipfs and writes only the
 * canonical form.
 */
import type { CID } from "multiformats/cid";
import { byteText, textBytes } from "../../util/byte_text.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { castCid } from "../cid/text.ts";
import { FieldReader, fieldLength, type Message, wireBytes, wireVarint, writeField } from "../protobuf/fields.ts";
import { varintLength, writeVarint } from "../protobuf/varint.ts";
import {
  LINK_HASH,
  LINK_HASH_TAG,
  LINK_NAME,
  LINK_NAME_TAG,
  LINK_TSIZE,
  LINK_TSIZE_TAG,
  NODE_DATA,
  NODE_DATA_TAG,
  NODE_LINKS,
  NODE_LINKS_TAG,
} from "./field_numbers.ts";
import type { PbLink, PbNode } from "./pb_node.ts";
import { scanLinks, scanNode } from "./scan_links.ts";

export type { PbLink, PbNode } from "./pb_node.ts";

/**
 * Size in bytes of a block and all blocks below it, computed from the sizes in its links. A link to
 * the block stores it as Tsize.
 */
export const cumulativeSize = ({ length, links }: Pick<PbNode, "links"> & { readonly length: number }): number =>
  links.reduce((sum, { size }) => sum + size, length);

const empty = new Uint8Array();

/** Decodes a stored block. @throws NodeError if the bytes are not a dag-pb node */
export function decodePb(bytes: Uint8Array): PbNode {
  try {
    return scanNode(bytes) ?? parsePb(bytes);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw failure("DAG_PB_INVALID", { reason: `failed to decode Protocol Buffers: ${error.message}` }, error);
  }
}

/**
 * Decodes a node that a client sent: same rules as `decodePb`, other error texts.
 *
 * @throws NodeError if it is not a dag-pb node
 */
export function parsePb(bytes: Uint8Array): PbNode {
  const links: PbLink[] = [];
  let fault: NodeError | undefined;
  const data = fieldsOf(bytes, (link) => {
    // Creating an error costs more than decoding a link, and a block may consist of invalid links
    // only. So only the first error is created.
    if (fault !== undefined) {
      if (link.length > 0) readLink(link);
      return;
    }
    try {
      links.push(decodeLink(link, links.length));
    } catch (error) {
      if (!(NodeError.is(error) && error.code === "DAG_PB_LINK_INVALID")) throw error;
      fault ??= error;
    }
  });
  // The error of a link is reported only after the whole input was found to be a valid message.
  if (fault !== undefined)
    throw failure("DAG_PB_INVALID", { reason: `incorrectly formatted merkledag node: ${fault.message}` });
  return { data, links: inOrder(links) };
}

/** Returns the data of a node, and passes the message of each link to `take`. */
function fieldsOf(bytes: Uint8Array, take: (link: Uint8Array) => void): Uint8Array | undefined {
  try {
    const reader = new FieldReader(bytes, nodeMessage);
    let data: Uint8Array | undefined;
    while (reader.next()) {
      if (reader.field === NODE_DATA) data = reader.bytes;
      else if (reader.field === NODE_LINKS) take(reader.bytes);
    }
    return data;
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    throw failure(
      "DAG_PB_INVALID",
      { reason: `incorrectly formatted merkledag node: unmarshal failed. ${error.message}` },
      error,
    );
  }
}

export const nodeMessage: Message = {
  name: "PBNode",
  fields: { [NODE_DATA]: ["Data", wireBytes], [NODE_LINKS]: ["Links", wireBytes] },
};
export const linkMessage: Message = {
  name: "PBLink",
  fields: { [LINK_HASH]: ["Hash", wireBytes], [LINK_NAME]: ["Name", wireBytes], [LINK_TSIZE]: ["Tsize", wireVarint] },
};

/** Decodes the message of one link; `at` is its index in the node. @throws NodeError */
export function decodeLink(bytes: Uint8Array, at = 0): PbLink {
  const { hash, name, size } = readLink(bytes);
  return { cid: linkCid(hash, at), name, size };
}

/** Reads the fields of a link. @throws NodeError if the bytes are not a protobuf message */
function readLink(bytes: Uint8Array): { readonly hash: Uint8Array; readonly name: string; readonly size: number } {
  const reader = new FieldReader(bytes, linkMessage);
  let hash: Uint8Array = empty;
  let name = "";
  let size = 0;
  while (reader.next()) {
    if (reader.field === LINK_HASH) hash = reader.bytes;
    else if (reader.field === LINK_NAME) name = byteText(reader.bytes);
    else if (reader.field === LINK_TSIZE) size = reader.number;
  }
  return { hash, name, size };
}

function linkCid(hash: Uint8Array, at: number): CID {
  try {
    return castCid(hash);
  } catch (error) {
    throw failure("DAG_PB_LINK_INVALID", { at, reason: (error as Error).message }, error);
  }
}

/**
 * Returns the data of a node without decoding its links.
 *
 * @throws NodeError if the bytes are not a dag-pb node
 */
export function pbData(bytes: Uint8Array): Uint8Array | undefined {
  const reader = new FieldReader(bytes, nodeMessage);
  let data: Uint8Array | undefined;
  while (reader.next()) if (reader.field === NODE_DATA) data = reader.bytes;
  return data;
}

/**
 * Returns the CIDs that a node links to, in order.
 *
 * @throws NodeError if the bytes are not a dag-pb node
 */
export const pbLinks = (bytes: Uint8Array): readonly CID[] =>
  scanLinks(bytes) ?? decodePb(bytes).links.map(({ cid }) => cid);

/** Sorts links by the bytes of their names; links with equal names keep their order. */
function inOrder(links: readonly PbLink[]): readonly PbLink[] {
  const sorted = links.every((link, at) => at === 0 || compareNames((links[at - 1] as PbLink).name, link.name) <= 0);
  return sorted ? links : links.toSorted((one, other) => compareNames(one.name, other.name));
}

/** Compares names by their bytes. */
export function compareNames(one: string, other: string): number {
  if (one === other) return 0;
  // UTF-16 code units sort like UTF-8 bytes, except for surrogates, which encode either characters
  // beyond U+FFFF or single bytes that are not UTF-8.
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const left = one.charCodeAt(at);
    const right = other.charCodeAt(at);
    if (left === right) continue;
    const isPlain = (left & 0xf800) !== 0xd800 && (right & 0xf800) !== 0xd800;
    return isPlain ? left - right : Buffer.compare(textBytes(one), textBytes(other));
  }
  return one.length - other.length;
}

/**
 * Encodes the canonical form: first the links, sorted by name, then the data unless it is empty.
 */
export function encodePb({ data, links }: PbNode): Uint8Array {
  const ordered = inOrder(links);
  const names = ordered.map(({ name }) => textBytes(name));
  const lengths = ordered.map(({ cid, size }, at) => linkLength(cid, (names[at] as Buffer).length, size));
  const dataLength = data === undefined || data.length === 0 ? 0 : fieldLength(data.length);
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + fieldLength(length), dataLength));
  let at = 0;
  for (const [index, { cid, size }] of ordered.entries()) {
    const name = names[index] as Buffer;
    bytes[at++] = NODE_LINKS_TAG;
    at = writeVarint(bytes, at, lengths[index] as number);
    at = writeLink(bytes, at, cid, name, size);
  }
  if (dataLength > 0) writeField(bytes, at, NODE_DATA_TAG, data as Uint8Array);
  return bytes;
}

/** Encodes a link as a field of its node, including tag and length. */
export function encodeLink({ cid, name, size }: PbLink): Uint8Array {
  const text = textBytes(name);
  const length = linkLength(cid, text.length, size);
  const bytes = new Uint8Array(fieldLength(length));
  bytes[0] = NODE_LINKS_TAG;
  writeLink(bytes, writeVarint(bytes, 1, length), cid, text, size);
  return bytes;
}

function writeLink(into: Uint8Array, from: number, cid: CID, name: Uint8Array, size: number): number {
  let at = writeField(into, from, LINK_HASH_TAG, cid.bytes);
  at = writeField(into, at, LINK_NAME_TAG, name);
  into[at++] = LINK_TSIZE_TAG;
  return writeVarint(into, at, size);
}

const linkLength = (cid: CID, nameLength: number, size: number): number =>
  fieldLength(cid.bytes.length) + fieldLength(nameLength) + 1 + varintLength(size);
