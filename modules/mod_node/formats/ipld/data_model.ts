/** Blocks whose codec holds values of the "IPLD Data Model", and nodes as JSON. */
import type { CID } from "multiformats/cid";
import { atOnce, ITEMS_PER_STEP, inSlices, type Steps, TextCollector } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { GoText, goJson, JsonText } from "../../util/go/text.ts";
import { cbor, dagCbor, dagJose, dagJson, dagPb, json, raw } from "../cid/codecs.ts";
import { decodeCborSteps, type Value, visitValueSteps } from "../dag_cbor/value.ts";
import { readDagJsonSteps, readPlainJsonSteps } from "../dag_json/read.ts";
import { writeJsonSteps } from "../dag_json/write.ts";
import { decodePb } from "../dag_pb/dag_pb.ts";
import { decodeJoseSteps } from "./dag_jose.ts";

const readers = new Map<number, (bytes: Uint8Array) => Steps<Value>>([
  [dagCbor, (bytes) => decodeCborSteps(bytes)],
  [dagJson, readDagJsonSteps],
  [dagJose, decodeJoseSteps],
  [cbor, (bytes) => decodeCborSteps(bytes, "strict without links")],
  [json, readPlainJsonSteps],
]);

/** Whether blocks of that codec are values. */
export const hasValues = (code: number): boolean => readers.has(code);

/**
 * The value of a block; undefined for a codec without values. @throws NodeError when the bytes are
 * malformed
 */
export const valueIn = (cid: CID, bytes: Uint8Array): Value | undefined => atOnce(valueInSteps(cid, bytes));

/** Bytes of a block that is read in slices. */
const MIN_SLICED = 64 * 1024;

/** As `valueIn`, but without holding the event loop for long; no promise for most blocks. */
export function valueWithTurns(cid: CID, bytes: Uint8Array): Value | undefined | Promise<Value | undefined> {
  return bytes.length < MIN_SLICED ? valueIn(cid, bytes) : inSlices(valueInSteps(cid, bytes));
}

/** In steps, as `valueIn`. */
export function* valueInSteps(cid: CID, bytes: Uint8Array): Steps<Value | undefined> {
  const read = readers.get(cid.code);
  return read && (yield* read(bytes));
}

/** The CIDs in a value, in order. */
export const linksIn = (value: Value): CID[] => atOnce(linksInSteps(value));

/** In steps, as `linksIn`. */
export function* linksInSteps(value: Value): Steps<CID[]> {
  const found: CID[] = [];
  const none = () => {};
  const scalar = (each: Value) => {
    if (isCid(each)) found.push(each);
  };
  yield* visitValueSteps(value, () => 0, { enter: none, leave: none, item: none, key: none, scalar });
  return found;
}

export const isCid = (value: Value): value is CID =>
  typeof value === "object" && value !== null && "asCID" in value && value.asCID === value;

/** A node as the reference's `dag get` prints it. @throws NodeError */
export const nodeJson = (cid: CID, bytes: Uint8Array): JsonText => atOnce(nodeJsonSteps(cid, bytes));

/** In steps, as `nodeJson`. */
export function* nodeJsonSteps(cid: CID, bytes: Uint8Array): Steps<JsonText> {
  const value = yield* valueInSteps(cid, bytes);
  if (value !== undefined) return yield* valueJsonSteps(value);
  if (cid.code === raw) return new JsonText(goJson(new GoText(bytes)));
  if (cid.code !== dagPb) throw failure("CODEC_UNREADABLE", { codec: cid.code });
  return new JsonText(yield* pbJsonSteps(bytes));
}

function* pbJsonSteps(bytes: Uint8Array): Steps<string> {
  const { data, links } = decodePb(bytes);
  const parts = new TextCollector();
  parts.push('{"data":', goJson(data === undefined ? null : Buffer.from(data).toString("base64")), ',"links":[');
  for (const [at, { name, size, cid: target }] of links.entries()) {
    if (at % ITEMS_PER_STEP === 0) yield;
    parts.push(at === 0 ? "" : ",", goJson({ Name: name, Size: size, Cid: { "/": target.toString() } }));
  }
  parts.push("]}");
  return parts.text;
}

/** A part of a node in the same form. @throws NodeError */
export function* valueJsonSteps(value: Value): Steps<JsonText> {
  return new JsonText(yield* writeJsonSteps(value));
}
