/** The links of a block, by its codec. */
import type { CID } from "multiformats/cid";
import { inSlices, type Steps } from "../../util/async/steps.ts";
import { NodeError } from "../../util/errors.ts";
import { dagCbor, dagJson, dagPb, raw } from "../cid/codecs.ts";
import { cborLinks, cborLinksSteps } from "../dag_cbor/value.ts";
import { readDagJson, readDagJsonSteps } from "../dag_json/read.ts";
import { decodePb, type PbLink, pbLinks } from "../dag_pb/dag_pb.ts";
import { linksIn, linksInSteps } from "./data_model.ts";

const none: readonly CID[] = [];

const byCodec: ReadonlyMap<number, (bytes: Uint8Array) => readonly CID[]> = new Map([
  [raw, () => none],
  [dagPb, pbLinks],
  [dagCbor, cborLinks],
  [dagJson, (bytes) => linksIn(readDagJson(bytes))],
]);

const inSteps: ReadonlyMap<number, (bytes: Uint8Array) => Steps<readonly CID[]>> = new Map([
  [dagCbor, cborLinksSteps],
  [
    dagJson,
    function* (bytes): Steps<readonly CID[]> {
      return yield* linksInSteps(yield* readDagJsonSteps(bytes));
    },
  ],
]);

/** Bytes of a block that is read in slices. */
const MIN_SLICED = 64 * 1024;

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

/** As `linksOf`, but without holding the event loop for long; no promise for most blocks. */
export function linksWithTurns(cid: CID, bytes: Uint8Array): readonly CID[] | Promise<readonly CID[]> {
  const steps = bytes.length < MIN_SLICED ? undefined : inSteps.get(cid.code);
  return steps === undefined ? linksOf(cid, bytes) : inSlices(steps(bytes));
}

/** Links with names and sizes, which only dag-pb has. @throws NodeError like `linksOf` */
export async function namedLinksWithTurns(cid: CID, bytes: Uint8Array): Promise<readonly PbLink[]> {
  if (cid.code === dagPb) return decodePb(bytes).links;
  return (await linksWithTurns(cid, bytes)).map((link) => ({ name: "", size: 0, cid: link }));
}

/** As `namedLinksWithTurns`, at once. @throws NodeError like `linksOf` */
export function namedLinks(cid: CID, bytes: Uint8Array): readonly PbLink[] {
  if (cid.code === dagPb) return decodePb(bytes).links;
  return linksOf(cid, bytes).map((link) => ({ name: "", size: 0, cid: link }));
}
