/** What a block links to, by its codec. */
import * as cborCodec from "@ipld/dag-cbor";
import type { CID } from "multiformats/cid";
import { dagCbor, dagPb, raw } from "../cid/codecs.ts";
import { NodeError } from "../errors.ts";
import { decodePb, type PbLink, pbLinks } from "./pb.ts";

function cborLinks(bytes: Uint8Array): readonly CID[] {
  const found: CID[] = [];
  collect(cborCodec.decode(bytes), found);
  return found;
}

/** Depth first, map keys in the order of the canonical encoding, as the reference lists them. */
function collect(value: unknown, found: CID[]): void {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return;
  if (isCid(value)) {
    found.push(value);
    return;
  }
  for (const inner of Array.isArray(value) ? value : Object.values(value)) collect(inner, found);
}

export const isCid = (value: object): value is CID => (value as CID).asCID === value;

const none: readonly CID[] = [];

const byCodec: ReadonlyMap<number, (bytes: Uint8Array) => readonly CID[]> = new Map([
  [raw, () => none],
  [dagPb, pbLinks],
  [dagCbor, cborLinks],
]);

/**
 * Links of a block in the order in which the reference walks them; a child that is linked twice is listed twice.
 *
 * @throws NodeError when the codec is not known or the bytes are none of it
 */
export function linksOf(cid: CID, bytes: Uint8Array): readonly CID[] {
  const read = byCodec.get(cid.code);
  if (read === undefined) throw new NodeError(`unrecognized object type: ${cid.code}`);
  try {
    return read(bytes);
  } catch (error) {
    throw error instanceof NodeError ? error : new NodeError((error as Error).message, { cause: error });
  }
}

/** The same with names and sizes, which only links of dag-pb have. @throws NodeError like `linksOf` */
export function namedLinks(cid: CID, bytes: Uint8Array): readonly PbLink[] {
  if (cid.code === dagPb) return decodePb(bytes).links;
  return linksOf(cid, bytes).map((link) => ({ name: "", size: 0, cid: link }));
}
