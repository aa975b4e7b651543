/** From values of callers to the bytes of a codec, and back: the codecs that the client libraries bring along. */
import type { CID } from "multiformats/cid";
import * as json from "multiformats/codecs/json";
import { NodeError } from "../../util/errors.ts";
import { dagCbor, dagJson, dagPb, raw } from "../cid/codecs.ts";
import { decodeCbor, encodeCbor } from "../dag_cbor/value.ts";
import { readDagJson } from "../dag_json/read.ts";
import { writeDagJson } from "../dag_json/write.ts";
import { decodeDagPb, encodeDagPb } from "../dag_pb/pb_object.ts";
import { fromJs, toJs } from "./js_values.ts";

interface JsCodec {
  readonly name: string;
  readonly code: number;
  readonly encode: (value: unknown) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => unknown;
}

function requireBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw new NodeError("only bytes can be encoded so");
}

const same = (bytes: Uint8Array) => bytes;

const codecs: readonly JsCodec[] = [
  { name: "dag-pb", code: dagPb, encode: encodeDagPb, decode: decodeDagPb },
  {
    name: "dag-cbor",
    code: dagCbor,
    encode: (value) => encodeCbor(fromJs(value)),
    decode: (bytes) => toJs(decodeCbor(bytes)),
  },
  {
    name: "dag-json",
    code: dagJson,
    encode: (value) => writeDagJson(fromJs(value)),
    decode: (bytes) => toJs(readDagJson(bytes)),
  },
  { name: json.name, code: json.code, encode: json.encode, decode: json.decode },
  { name: "raw", code: raw, encode: requireBytes, decode: same },
  { name: "identity", code: 0, encode: requireBytes, decode: same },
];

const found = (codec: JsCodec | undefined, wanted: string | number): JsCodec => {
  if (codec === undefined) throw new NodeError(`No codec found for "${wanted}"`);
  return codec;
};

/** @throws NodeError for a codec that has none, and for what is no value of it */
export const encodeValue = (name: string, value: unknown): Uint8Array =>
  found(
    codecs.find((codec) => codec.name === name),
    name,
  ).encode(value);

/** @throws NodeError for a codec that has none, and for bytes that are none of it */
export const decodeValue = ({ code }: CID, bytes: Uint8Array): unknown =>
  found(
    codecs.find((codec) => codec.code === code),
    code,
  ).decode(bytes);
