/** Only the links of a dag-pb node, fast: walking pins and collecting garbage spend most of their time here. */
import type { CID } from "multiformats/cid";
import { castCid } from "../cid/text.ts";
import { LINK_HASH_TAG, LINK_NAME_TAG, LINK_TSIZE_TAG, NODE_DATA_TAG, NODE_LINKS_TAG } from "./field_numbers.ts";

/** Bytes of the longest varint that is read here; longer ones are left to the full decoder. */
const MAX_VARINT_BYTES = 9;

/**
 * The CIDs of the links of a node in canonical form, in order: links sorted by name, each with hash, name and size.
 * Undefined for a node in another form, and for bytes that are not a node.
 */
export function scanLinks(bytes: Uint8Array): readonly CID[] | undefined {
  const cids: CID[] = [];
  let at = 0;
  /** The end of what is being read: of the node, or of one link. */
  let end = bytes.length;
  let name = bytes.subarray(0, 0);

  function varint(): number | undefined {
    let value = 0;
    for (let digit = 0, scale = 1; digit < MAX_VARINT_BYTES && at < end; digit += 1, scale *= 128) {
      const byte = bytes[at++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return undefined;
  }

  /** Skips a length-delimited field and returns where its bytes begin; undefined for another tag or a cut-off field. */
  function field(tag: number): number | undefined {
    if (bytes[at] !== tag) return undefined;
    at += 1;
    const length = varint();
    if (length === undefined || at + length > end) return undefined;
    at += length;
    return at - length;
  }

  while (at < bytes.length) {
    end = bytes.length;
    if (bytes[at] === NODE_DATA_TAG) {
      if (field(NODE_DATA_TAG) === undefined) return undefined;
      continue;
    }
    const from = field(NODE_LINKS_TAG);
    if (from === undefined) return undefined;
    end = at;
    at = from;
    const hashFrom = field(LINK_HASH_TAG);
    const hashEnd = at;
    const nameFrom = field(LINK_NAME_TAG);
    if (hashFrom === undefined || nameFrom === undefined) return undefined;
    if (at > nameFrom || name.length > 0) {
      const next = bytes.subarray(nameFrom, at);
      if (Buffer.compare(name, next) > 0) return undefined;
      name = next;
    }
    if (bytes[at] !== LINK_TSIZE_TAG) return undefined;
    at += 1;
    if (varint() === undefined || at !== end) return undefined;
    try {
      cids.push(castCid(bytes.subarray(hashFrom, hashEnd)));
    } catch {
      return undefined;
    }
  }
  return cids;
}
