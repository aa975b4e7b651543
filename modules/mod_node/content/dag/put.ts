/** The inputs of `dag put`, by the encoding of the input and the codec of the block. */

import { dagCbor, dagJson, dagPb, multicodecNamed, raw } from "../../formats/cid/codecs.ts";
import { type HashFunction, hashNamed, sha256 } from "../../formats/cid/hashes.ts";
import { decodeCborSteps, type Value } from "../../formats/dag_cbor/value.ts";
import { canonicalCborSteps, encodeCborSteps } from "../../formats/dag_cbor/write.ts";
import { readPbJson } from "../../formats/dag_json/dag_pb_json.ts";
import { readDagJsonSteps, readJsonSteps } from "../../formats/dag_json/read.ts";
import { writeDagJsonSteps } from "../../formats/dag_json/write.ts";
import { encodePb, parsePb } from "../../formats/dag_pb/dag_pb.ts";
import { decodeBlockSteps, encodeBlockSteps } from "../../formats/ipld/codec_values.ts";
import { makeBlock } from "../../storage/blockstore/make_block.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { inSlices, type Steps } from "../../util/async/steps.ts";
import { failure } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";

/**
 * Converts the bytes of the input to those of the block. @throws NodeError when they are malformed
 */
type Parse = (bytes: Uint8Array) => Uint8Array | Steps<Uint8Array>;

/** Checks the bytes and returns them unchanged, with unknown fields. */
const checkedPb: Parse = (bytes) => {
  parsePb(bytes);
  return bytes;
};

/** Reads a value in one encoding and writes it in another. */
function recoded(read: (bytes: Uint8Array) => Steps<Value>, write: (value: Value) => Steps<Uint8Array>): Parse {
  return function* (bytes) {
    return yield* write(yield* read(bytes));
  };
}

function* pbOfJson(bytes: Uint8Array): Steps<Uint8Array> {
  const node = yield* readPbJson(bytes);
  yield;
  return encodePb(node);
}

const spellings: Readonly<Record<string, string>> = { "dag-cbor": "cbor", "dag-pb": "protobuf" };

/**
 * The reference's four inputs, and the codec names that later versions use as inputs.
 *
 * Unlike the reference's `json`, `dag-json` distinguishes integers from floats, and bytes from
 * text.
 */
const inputs: Readonly<Record<string, Readonly<Record<string, Parse>>>> = {
  json: { cbor: recoded(readJsonSteps, encodeCborSteps), protobuf: pbOfJson },
  raw: { cbor: canonicalCborSteps, protobuf: checkedPb, raw: (bytes) => bytes },
  cbor: { cbor: canonicalCborSteps },
  protobuf: { protobuf: checkedPb },
  "dag-cbor": { cbor: canonicalCborSteps, "dag-json": recoded(decodeCborSteps, writeDagJsonSteps) },
  "dag-json": {
    cbor: recoded(readDagJsonSteps, encodeCborSteps),
    "dag-json": recoded(readDagJsonSteps, writeDagJsonSteps),
  },
  "dag-pb": { protobuf: checkedPb },
};

const codecs: Readonly<Record<string, number>> = { cbor: dagCbor, protobuf: dagPb, raw, "dag-json": dagJson };

export type MakeNode = (bytes: Uint8Array) => Promise<Block>;

/**
 * Returns an entry of a table. A name that every object inherits, such as `constructor`, is no
 * entry.
 */
const ownProperty = <T>(table: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;

/**
 * Returns a function that makes the nodes of one call. An empty `hashName` is the default. A dag-pb
 * node gets CID version 0 if possible. The returned function rejects with NodeError.
 *
 * @throws NodeError for an unknown hash function
 */
export function nodeMaker(inputName: string, format: string, hashName: string): MakeNode {
  const hash = hashName === "" ? sha256 : hashNamed(hashName);
  if (hash === undefined) throw failure("HASH_NAME_UNKNOWN", { reason: `${hashName} in not a valid multihash name` });
  return async (bytes) => {
    const { parse, codec } = parserOf(inputName, format);
    const made = parse(bytes);
    const block = made instanceof Uint8Array ? made : await inSlices(made);
    return makeBlock(block, { codec: versionZero(codec, hash) ? undefined : codec, hash, length: -1 });
  };
}

/**
 * Returns a function that makes nodes as later versions of the reference do: with the names of
 * codecs in the multicodec table, and CIDs of version 1.
 *
 * @throws NodeError for an unknown codec or hash function
 */
export function codecNodeMaker(inputCodec: string, storeCodec: string, hashName: string): MakeNode {
  const input = multicodecNamed(inputCodec);
  const codec = multicodecNamed(storeCodec);
  const hash = hashName === "" ? sha256 : hashNamed(hashName, "multicodec");
  if (hash === undefined) throw failure("HASH_NAME_UNKNOWN", { reason: `unknown multicodec: ${quote(hashName)}` });
  return async (bytes) => {
    const value = await inSlices(decodeBlockSteps(input, bytes));
    return makeBlock(await inSlices(encodeBlockSteps(codec, value)), { codec, hash, length: -1 });
  };
}

const versionZero = (codec: number, hash: HashFunction): boolean => codec === dagPb && hash === sha256;

function parserOf(inputName: string, format: string): { readonly parse: Parse; readonly codec: number } {
  const input = ownProperty(inputs, inputName);
  if (input === undefined) throw failure("CODEC_NAME_UNKNOWN", { reason: `no input parser for ${quote(inputName)}` });
  const name = ownProperty(spellings, format) ?? format;
  const parse = ownProperty(input, name);
  if (parse === undefined) {
    throw failure("CODEC_NAME_UNKNOWN", {
      reason: `no parser for format ${quote(format)} using input type ${quote(inputName)}`,
    });
  }
  return { parse, codec: codecs[name] as number };
}
