/** Reads blocks whose codec stores values of the "IPLD Data Model", and prints nodes as JSON. */
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

/** Whether blocks with this codec store values. */
export const hasValues = (code: number): boolean => readers.has(code);

/**
 * Returns the value of a block; undefined for a codec without values.
 *
 * @throws NodeError if the bytes are malformed
 */
export const valueIn = (cid: CID, bytes: Uint8Array): Value | undefined => atOnce(valueInSteps(cid, bytes));

/** Minimum size in bytes of a block that is read in slices. */
const MIN_SLICED = 64 * 1024;

/**
 * Same as `valueIn`, but large blocks are read in slices that do not block the event loop. Returns
 * a promise only for those.
 */
export function valueWithTurns(cid: CID, bytes: Uint8Array): Value | undefined | Promise<Value | undefined> {
  return bytes.length < MIN_SLICED ? valueIn(cid, bytes) : inSlices(valueInSteps(cid, bytes));
}

/** Same as `valueIn`, in steps. */
export function* valueInSteps(cid: CID, bytes: Uint8Array): Steps<Value | undefined> {
  const read = readers.get(cid.code);
  return read && (yield* read(bytes));
}

/** Returns the CIDs in a value, in order. */
export const linksIn = (value: Value): CID[] => atOnce(linksInSteps(value));

/** Same as `linksIn`, in steps. */
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

/** Returns a node in the JSON form that `dag get` of go-ipfs prints. @throws NodeError */
export const nodeJson = (cid: CID, bytes: Uint8Array): JsonText => atOnce(nodeJsonSteps(cid, bytes));

/** Same as `nodeJson`, in steps. */
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

/** Returns a part of a node in the JSON form of `nodeJson`. @throws NodeError */
export function* valueJsonSteps(value: Value): Steps<JsonText> {
  return new JsonText(yield* writeJsonSteps(value));
}
