/** Lists the links of a block, by its codec. */
import type { CID } from "multiformats/cid";
import { atOnce, inSlices, type Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { dagCbor, dagPb, raw } from "../cid/codecs.ts";
import { cborLinks, cborLinksSteps } from "../dag_cbor/value.ts";
import type { CborRules } from "../dag_cbor/visit.ts";
import { decodePb, type PbLink, pbLinks } from "../dag_pb/dag_pb.ts";
import { linksInSteps, valueInSteps } from "./data_model.ts";

const none: readonly CID[] = [];

const byCodec = new Map<number, (bytes: Uint8Array, rules?: CborRules) => readonly CID[]>([
  [raw, () => none],
  [dagPb, pbLinks],
  [dagCbor, cborLinks],
]);

/** Minimum size in bytes of a block that is read in slices. */
const MIN_SLICED = 64 * 1024;

/**
 * Returns the links in the order in which go-ipfs walks them. A child that is linked twice is
 * listed twice.
 *
 * @throws NodeError if the codec is unknown or the bytes are malformed
 */
export function linksOf(cid: CID, bytes: Uint8Array, rules?: CborRules): readonly CID[] {
  return byCodec.get(cid.code)?.(bytes, rules) ?? atOnce(valueLinksSteps(cid, bytes));
}

/**
 * Same as `linksOf`, but large blocks are read in slices that do not block the event loop. Returns
 * a promise only for those.
 */
export function linksWithTurns(
  cid: CID,
  bytes: Uint8Array,
  rules?: CborRules,
): readonly CID[] | Promise<readonly CID[]> {
  if (bytes.length < MIN_SLICED || cid.code === raw || cid.code === dagPb) return linksOf(cid, bytes, rules);
  return inSlices(cid.code === dagCbor ? cborLinksSteps(bytes, rules) : valueLinksSteps(cid, bytes));
}

function* valueLinksSteps(cid: CID, bytes: Uint8Array): Steps<readonly CID[]> {
  const value = yield* valueInSteps(cid, bytes);
  if (value === undefined) throw failure("CODEC_UNREADABLE", { codec: cid.code });
  return yield* linksInSteps(value);
}

/**
 * Returns links with names and sizes, which only dag-pb has.
 *
 * @throws NodeError as `linksOf` does
 */
export async function namedLinksWithTurns(cid: CID, bytes: Uint8Array): Promise<readonly PbLink[]> {
  if (cid.code === dagPb) return decodePb(bytes).links;
  return (await linksWithTurns(cid, bytes)).map((link) => ({ name: "", size: 0, cid: link }));
}

/** Same as `namedLinksWithTurns`, synchronously. @throws NodeError as `linksOf` does */
export function namedLinks(cid: CID, bytes: Uint8Array): readonly PbLink[] {
  if (cid.code === dagPb) return decodePb(bytes).links;
  return linksOf(cid, bytes).map((link) => ({ name: "", size: 0, cid: link }));
}
