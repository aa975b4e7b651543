/** The links of a block, by its codec. */
import type { CID } from "multiformats/cid";
import { NodeError } from "../../util/errors.ts";
import { dagCbor, dagJson, dagPb, raw } from "../cid/codecs.ts";
import { cborLinks } from "../dag_cbor/value.ts";
import { readDagJson } from "../dag_json/read.ts";
import { decodePb, type PbLink, pbLinks } from "../dag_pb/dag_pb.ts";
import { linksIn } from "./data_model.ts";

const none: readonly CID[] = [];

const byCodec: ReadonlyMap<number, (bytes: Uint8Array) => readonly CID[]> = new Map([
  [raw, () => none],
  [dagPb, pbLinks],
  [dagCbor, cborLinks],
  [dagJson, (bytes) => linksIn(readDagJson(bytes))],
]);

/**
 * The links in the order in which the reference walks them; a child that is linked twice is listed twice.
 *
 * @throws NodeError when the codec is unknown or the bytes are malformed
 */
export function linksOf(cid: CID, bytes: Uint8Array): readonly CID[] {
  const read = byCodec.get(cid.code);
  if (read === undefined) throw new NodeError(`unrecognized object type: ${cid.code}`);
  return read(bytes);
}

/** Links with names and sizes, which only dag-pb has. @throws NodeError like `linksOf` */
export function namedLinks(cid: CID, bytes: Uint8Array): readonly PbLink[] {
  if (cid.code === dagPb) return decodePb(bytes).links;
  return linksOf(cid, bytes).map((link) => ({ name: "", size: 0, cid: link }));
}
