/**
 * Encodes JavaScript values of callers to blocks and decodes blocks to JavaScript values, with the
 * codecs that the client libraries support.
 */
import * as strictDagCbor from "@ipld/dag-cbor";
import type { CID } from "multiformats/cid";
import * as json from "multiformats/codecs/json";
import type { Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { dagCbor, dagJson, dagPb, raw } from "../cid/codecs.ts";
import { decodeCborSteps, type Value } from "../dag_cbor/value.ts";
import { encodeCbor } from "../dag_cbor/write.ts";
import { readDagJsonSteps } from "../dag_json/read.ts";
import { writeDagJson } from "../dag_json/write.ts";
import { decodeDagPb, encodeDagPb } from "../dag_pb/pb_object.ts";
import { fromJs, toJsSteps } from "./js_values.ts";

interface JsCodec {
  readonly name: string;
  readonly code: number;
  readonly encode: (value: unknown) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => Steps<unknown>;
}

/** Runs a decoder in a single step. */
const once = (decode: (bytes: Uint8Array) => unknown) =>
  function* (bytes: Uint8Array): Steps<unknown> {
    yield;
    return decode(bytes);
  };

const inSteps = (read: (bytes: Uint8Array) => Steps<Value>) =>
  function* (bytes: Uint8Array): Steps<unknown> {
    return yield* toJsSteps(yield* read(bytes));
  };

/** Maximum size in bytes of a block that is decoded without interruption. */
const MAX_AT_ONCE = 256 * 1024;

/**
 * The library is several times faster than our decoder, but it accepts only strict dag-cbor and
 * cannot be interrupted.
 */
function* decodeDagCbor(bytes: Uint8Array): Steps<unknown> {
  if (bytes.length <= MAX_AT_ONCE) {
    try {
      return strictDagCbor.decode(bytes);
    } catch {
      // The lenient decoder below returns the value, or the reason why there is none.
    }
  }
  return yield* toJsSteps(yield* decodeCborSteps(bytes));
}

function requireBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw failure("VALUE_NOT_ENCODABLE", { reason: "only bytes can be encoded so" });
}

const same = (bytes: Uint8Array) => bytes;

const codecs: readonly JsCodec[] = [
  { name: "dag-pb", code: dagPb, encode: encodeDagPb, decode: once(decodeDagPb) },
  {
    name: "dag-cbor",
    code: dagCbor,
    encode: (value) => encodeCbor(fromJs(value)),
    decode: decodeDagCbor,
  },
  {
    name: "dag-json",
    code: dagJson,
    encode: (value) => writeDagJson(fromJs(value)),
    decode: inSteps(readDagJsonSteps),
  },
  { name: json.name, code: json.code, encode: json.encode, decode: once(json.decode) },
  { name: "raw", code: raw, encode: requireBytes, decode: once(same) },
  { name: "identity", code: 0, encode: requireBytes, decode: once(same) },
];

const found = (codec: JsCodec | undefined, wanted: string | number): JsCodec => {
  if (codec === undefined) throw failure("CODEC_NAME_UNKNOWN", { reason: `No codec found for "${wanted}"` });
  return codec;
};

/**
 * @throws NodeError for a codec without an encoder, and for a value that the codec cannot express
 */
export const encodeValue = (name: string, value: unknown): Uint8Array =>
  found(
    codecs.find((codec) => codec.name === name),
    name,
  ).encode(value);

/**
 * Decodes a block in steps.
 *
 * @throws NodeError for a codec without a decoder, and for bytes that do not match the codec
 */
export const decodeValueSteps = ({ code }: CID, bytes: Uint8Array): Steps<unknown> =>
  found(
    codecs.find((codec) => codec.code === code),
    code,
  ).decode(bytes);
