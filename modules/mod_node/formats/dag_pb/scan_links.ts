/** The links of a dag-pb node alone: what walks of pins and collections spend their time on. */
import type { CID } from "multiformats/cid";
import { castCid } from "../cid/text.ts";

/** Field numbers with their wire types. */
const node = { data: 0x0a, link: 0x12 } as const;
const link = { hash: 0x0a, name: 0x12, size: 0x18 } as const;
/** Bytes of the longest varint that is read here. */
const MAX_VARINT_BYTES = 9;

/**
 * CIDs of the links, in order, of a node in the form in which everybody writes them: links in order of their names, each
 * with its hash, name and size. Undefined of any other, and of what is no node.
 */
export function scanLinks(bytes: Uint8Array): readonly CID[] | undefined {
  const cids: CID[] = [];
  let at = 0;
  /** Reads up to here. */
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

  /** Passes over a field of bytes, and says where they begin; undefined when another one is there, or not all of it. */
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
    if (bytes[at] === node.data) {
      if (field(node.data) === undefined) return undefined;
      continue;
    }
    const from = field(node.link);
    if (from === undefined) return undefined;
    end = at;
    at = from;
    const hashFrom = field(link.hash);
    const hashEnd = at;
    const nameFrom = field(link.name);
    if (hashFrom === undefined || nameFrom === undefined) return undefined;
    if (at > nameFrom || name.length > 0) {
      const next = bytes.subarray(nameFrom, at);
      if (Buffer.compare(name, next) > 0) return undefined;
      name = next;
    }
    if (bytes[at] !== link.size) return undefined;
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
