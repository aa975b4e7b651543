/**
 * A fast reader for dag-pb nodes in canonical form, which nearly all are. Pinning, listing and
 * garbage collection spend most of their time reading links.
 */
import type { CID } from "multiformats/cid";
import { byteText } from "../../util/byte_text.ts";
import { castCid } from "../cid/text.ts";
import { LINK_HASH_TAG, LINK_NAME_TAG, LINK_TSIZE_TAG, NODE_DATA_TAG, NODE_LINKS_TAG } from "./field_numbers.ts";
import type { PbLink, PbNode } from "./pb_node.ts";

/**
 * Maximum length in bytes of a varint that this reader accepts; longer ones are left to the full
 * decoder.
 */
const MAX_VARINT_BYTES = 9;

/**
 * Returns the CIDs of the links of a node in canonical form, in order: links sorted by name, each
 * with hash, name and size. Returns undefined for any other node, and for bytes that are not a
 * node.
 */
export function scanLinks(bytes: Uint8Array): readonly CID[] | undefined {
  const cids: CID[] = [];
  const found = scan(bytes, (link) => {
    const cid = cidIn(bytes, link);
    if (cid !== undefined) cids.push(cid);
    return cid !== undefined;
  });
  return found === undefined ? undefined : cids;
}

/** Reads a whole node in canonical form; returns undefined where `scanLinks` does. */
export function scanNode(bytes: Uint8Array): PbNode | undefined {
  const links: PbLink[] = [];
  const found = scan(bytes, (link) => addLink(links, bytes, link));
  if (found === undefined || found.fields > 1) return undefined;
  return { data: dataIn(bytes, found), links };
}

const dataIn = (bytes: Uint8Array, { fields, from, to }: DataField): Uint8Array | undefined =>
  fields === 0 ? undefined : bytes.subarray(from, to);

export interface PagedNode extends Pick<PbNode, "data"> {
  readonly pages: Iterable<readonly PbLink[]>;
}

/**
 * Same as `scanNode`, but the links come in pages. A page is created only when it is requested, so
 * that only the current links of a large directory are in memory. Returns undefined where
 * `scanNode` does.
 */
export function scanPages(bytes: Uint8Array, pageLinks: number): PagedNode | undefined {
  const starts: number[] = [];
  let count = 0;
  const found = scan(bytes, (link) => {
    if (count % pageLinks === 0) starts.push(link.from);
    count += 1;
    return isCommonCid(bytes, link) || addLink([], bytes, link);
  });
  if (found === undefined || found.fields > 1) return undefined;
  return { data: dataIn(bytes, found), pages: pagesFrom(bytes, starts) };
}

function* pagesFrom(bytes: Uint8Array, starts: readonly number[]): Generator<readonly PbLink[], void, undefined> {
  for (const [page, start] of starts.entries()) {
    const links: PbLink[] = [];
    const some = bytes.subarray(start, starts[page + 1]);
    scan(some, (link) => addLink(links, some, link));
    yield links;
  }
}

/** Returns false if the hash of the link is not a CID. */
function addLink(links: PbLink[], bytes: Uint8Array, link: ScannedLink): boolean {
  const cid = cidIn(bytes, link);
  if (cid === undefined) return false;
  links.push({ cid, name: nameIn(bytes, link.nameFrom, link.nameTo), size: link.size });
  return true;
}

function cidIn(bytes: Uint8Array, { hashFrom, hashTo }: ScannedLink): CID | undefined {
  try {
    return castCid(bytes.subarray(hashFrom, hashTo));
  } catch {
    return undefined;
  }
}

const SHA256_CODE = 0x12;
const SHA256_BYTES = 32;

/** Whether the hash is a CID of version 1 with a one-byte codec and SHA-256, as nearly all are. */
function isCommonCid(bytes: Uint8Array, { hashFrom, hashTo }: ScannedLink): boolean {
  const at = hashTo - SHA256_BYTES - 2;
  if (bytes[at] !== SHA256_CODE || bytes[at + 1] !== SHA256_BYTES) return false;
  return at === hashFrom || (at === hashFrom + 2 && bytes[hashFrom] === 1 && (bytes[hashFrom + 1] as number) < 0x80);
}

const MAX_JOINED = 16;

/**
 * Decodes a name. Most names are short and ASCII; for those, joining characters is faster than a
 * call of the decoder.
 */
function nameIn(bytes: Uint8Array, from: number, to: number): string {
  let name = "";
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at] as number;
    if (byte >= 0x80 || to - from > MAX_JOINED) return byteText(bytes.subarray(from, to));
    name += String.fromCharCode(byte);
  }
  return name;
}

interface DataField {
  /** Number of data fields in the node. */
  readonly fields: number;
  /** Offsets of the last data field. */
  readonly from: number;
  readonly to: number;
}

/** Offsets of the parts of a link. The same object is reused for each link of a node. */
interface ScannedLink {
  from: number;
  hashFrom: number;
  hashTo: number;
  nameFrom: number;
  nameTo: number;
  size: number;
}

/**
 * Passes each link to `take`. Returns undefined as soon as it meets an unexpected byte, or `take`
 * returns false.
 */
function scan(bytes: Uint8Array, take: (link: ScannedLink) => boolean): DataField | undefined {
  const link: ScannedLink = { from: 0, hashFrom: 0, hashTo: 0, nameFrom: 0, nameTo: 0, size: 0 };
  let at = 0;
  /** The end of the message that is being read: of the node, or of one link. */
  let end = bytes.length;
  let lastFrom = 0;
  let lastTo = 0;
  let fields = 0;
  let dataFrom = 0;
  let dataTo = 0;

  /** Returns -1 if the varint is truncated or too long. */
  function varint(): number {
    let value = 0;
    for (let digit = 0, scale = 1; digit < MAX_VARINT_BYTES && at < end; digit += 1, scale *= 128) {
      const byte = bytes[at++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return -1;
  }

  /**
   * Skips a length-delimited field and returns the offset of its content. Returns -1 for another
   * tag or a truncated field.
   */
  function field(tag: number): number {
    if (bytes[at] !== tag) return -1;
    at += 1;
    const length = varint();
    if (length < 0 || at + length > end) return -1;
    at += length;
    return at - length;
  }

  while (at < bytes.length) {
    end = bytes.length;
    if (bytes[at] === NODE_DATA_TAG) {
      dataFrom = field(NODE_DATA_TAG);
      if (dataFrom < 0) return undefined;
      dataTo = at;
      fields += 1;
      continue;
    }
    link.from = at;
    const from = field(NODE_LINKS_TAG);
    if (from < 0) return undefined;
    end = at;
    at = from;
    const hashFrom = field(LINK_HASH_TAG);
    const hashTo = at;
    const nameFrom = hashFrom < 0 ? -1 : field(LINK_NAME_TAG);
    const nameTo = at;
    if (nameFrom < 0 || isLess(bytes, nameFrom, nameTo, lastFrom, lastTo)) return undefined;
    lastFrom = nameFrom;
    lastTo = nameTo;
    if (bytes[at] !== LINK_TSIZE_TAG) return undefined;
    at += 1;
    const size = varint();
    if (size < 0 || at !== end) return undefined;
    link.hashFrom = hashFrom;
    link.hashTo = hashTo;
    link.nameFrom = nameFrom;
    link.nameTo = nameTo;
    link.size = size;
    if (!take(link)) return undefined;
  }
  return { fields, from: dataFrom, to: dataTo };
}

/** Whether the first name sorts before the other one. */
function isLess(bytes: Uint8Array, from: number, to: number, otherFrom: number, otherTo: number): boolean {
  const length = Math.min(to - from, otherTo - otherFrom);
  for (let at = 0; at < length; at += 1) {
    const difference = (bytes[from + at] as number) - (bytes[otherFrom + at] as number);
    if (difference !== 0) return difference < 0;
  }
  return to - from < otherTo - otherFrom;
}
