/**
 * Converts blocks to values of the data model and back, for every codec that `dag get` and
 * `dag put` support.
 */
import type { Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { cbor, dagCbor, dagJose, dagJson, dagPb, json, multicodecName, raw } from "../cid/codecs.ts";
import { decodeCborSteps, type Value } from "../dag_cbor/value.ts";
import { encodeCborSteps, encodePlainCborSteps } from "../dag_cbor/write.ts";
import { readDagJsonSteps, readPlainJsonSteps } from "../dag_json/read.ts";
import { writeDagJsonSteps, writePlainJsonSteps } from "../dag_json/write.ts";
import { decodeDagPb, encodeDagPb } from "../dag_pb/pb_object.ts";
import { decodeJoseSteps, encodeJoseSteps } from "./dag_jose.ts";
import { linksInSteps } from "./data_model.ts";
import { fromJs, toJsSteps } from "./js_values.ts";

interface ValueCodec {
  readonly decode: (bytes: Uint8Array) => Steps<Value>;
  readonly encode: (value: Value) => Steps<Uint8Array>;
}

const bytesAlone: ValueCodec = {
  *decode(bytes) {
    yield;
    return bytes;
  },
  *encode(value) {
    yield;
    if (!(value instanceof Uint8Array))
      throw failure("VALUE_NOT_ENCODABLE", { reason: "only bytes can be written as raw" });
    return value;
  },
};

const pb: ValueCodec = {
  *decode(bytes) {
    yield;
    return fromJs(decodeDagPb(bytes));
  },
  *encode(value) {
    return encodeDagPb(yield* toJsSteps(value));
  },
};

const codecs: ReadonlyMap<number, ValueCodec> = new Map([
  [raw, bytesAlone],
  [dagPb, pb],
  [dagCbor, { decode: (bytes) => decodeCborSteps(bytes, "strict"), encode: encodeCborSteps }],
  [dagJson, { decode: readDagJsonSteps, encode: writeDagJsonSteps }],
  [dagJose, { decode: (bytes) => decodeJoseSteps(bytes), encode: encodeJoseSteps }],
  [
    cbor,
    {
      decode: (bytes) => decodeCborSteps(bytes, "strict without links"),
      encode: withoutLinks(encodePlainCborSteps),
    },
  ],
  [json, { decode: readPlainJsonSteps, encode: withoutLinks(writePlainJsonSteps) }],
]);

/** Wraps the encoder of a codec that cannot express links. */
function withoutLinks(encode: ValueCodec["encode"]): ValueCodec["encode"] {
  return function* (value) {
    const links = yield* linksInSteps(value);
    if (links.length > 0) throw failure("VALUE_NOT_ENCODABLE", { reason: "cannot encode links in this codec" });
    return yield* encode(value);
  };
}

function codecOf(code: number): ValueCodec {
  const codec = codecs.get(code);
  if (codec === undefined)
    throw failure("CODEC_NAME_UNKNOWN", {
      reason: `no codec is known for ${multicodecName(code) ?? `0x${code.toString(16)}`}`,
    });
  return codec;
}

/**
 * Decodes a block in steps.
 *
 * @throws NodeError for an unknown codec, and for bytes that do not match the codec
 */
export const decodeBlockSteps = (code: number, bytes: Uint8Array): Steps<Value> => codecOf(code).decode(bytes);

/**
 * Encodes a block in steps.
 *
 * @throws NodeError for an unknown codec, and for a value that the codec cannot express
 */
export const encodeBlockSteps = (code: number, value: Value): Steps<Uint8Array> => codecOf(code).encode(value);
