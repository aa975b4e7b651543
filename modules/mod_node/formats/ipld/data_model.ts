/** Blocks whose codec holds values of the "IPLD Data Model", and nodes as JSON. */
import type { CID } from "multiformats/cid";
import { NodeError } from "../../util/errors.ts";
import { GoText, goJson, JsonText } from "../../util/go/text.ts";
import { dagCbor, dagJson, dagPb, raw } from "../cid/codecs.ts";
import { decodeCbor, type Value, visitValue } from "../dag_cbor/value.ts";
import { readDagJson } from "../dag_json/read.ts";
import { writeJson } from "../dag_json/write.ts";
import { decodePb } from "../dag_pb/dag_pb.ts";

const readers: ReadonlyMap<number, (bytes: Uint8Array) => Value> = new Map([
  [dagCbor, decodeCbor],
  [dagJson, readDagJson],
]);

/** The value of a block; undefined for a codec without values. @throws NodeError when the bytes are malformed */
export const valueIn = (cid: CID, bytes: Uint8Array): Value | undefined => readers.get(cid.code)?.(bytes);

/** The CIDs in a value, in order. */
export function linksIn(value: Value): CID[] {
  const found: CID[] = [];
  const none = () => {};
  const scalar = (each: Value) => {
    if (isCid(each)) found.push(each);
  };
  visitValue(value, () => 0, { enter: none, leave: none, item: none, key: none, scalar });
  return found;
}

export const isCid = (value: Value): value is CID =>
  typeof value === "object" && value !== null && "asCID" in value && value.asCID === value;

/** A node as the reference's `dag get` prints it. @throws NodeError */
export function nodeJson(cid: CID, bytes: Uint8Array): JsonText {
  const value = valueIn(cid, bytes);
  if (value !== undefined) return valueJson(value);
  if (cid.code === raw) return new JsonText(goJson(new GoText(bytes)));
  if (cid.code !== dagPb) throw new NodeError(`unrecognized object type: ${cid.code}`);
  const { data, links } = decodePb(bytes);
  return new JsonText(
    goJson({
      data: data === undefined ? null : Buffer.from(data).toString("base64"),
      links: links.map(({ name, size, cid: target }) => ({ Name: name, Size: size, Cid: { "/": target.toString() } })),
    }),
  );
}

/** A part of a node in the same form. @throws NodeError */
export const valueJson = (value: Value): JsonText => new JsonText(writeJson(value));
