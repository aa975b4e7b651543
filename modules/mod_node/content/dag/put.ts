/** What `dag put` reads, by the form of the input and the codec that it is stored in (storage section 5). */

import { dagCbor, dagJson, dagPb, raw } from "../../formats/cid/codecs.ts";
import { type HashFunction, hashNamed, sha256 } from "../../formats/cid/hashes.ts";
import { canonicalCbor, decodeCbor, encodeCbor } from "../../formats/dag_cbor/value.ts";
import { readPbJson } from "../../formats/dag_json/dag_pb_json.ts";
import { readDagJson, readJson } from "../../formats/dag_json/read.ts";
import { writeDagJson } from "../../formats/dag_json/write.ts";
import { encodePb, parsePb } from "../../formats/dag_pb/dag_pb.ts";
import { makeBlock } from "../../storage/blockstore/make_block.ts";
import type { Block } from "../../storage/blockstore/store.ts";
import { NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";

/** From the bytes of the input to those of the block. @throws NodeError when they are none */
type Parse = (bytes: Uint8Array) => Uint8Array;

/** The bytes themselves, fields that nobody knows with them. */
const pb: Parse = (bytes) => {
  parsePb(bytes);
  return bytes;
};

const spellings: Readonly<Record<string, string>> = { "dag-cbor": "cbor", "dag-pb": "protobuf" };

/**
 * The reference's four inputs, and those that later versions name by codec.
 *
 * Unlike the older form `json`, `dag-json` keeps integers and bytes what they are.
 */
const inputs: Readonly<Record<string, Readonly<Record<string, Parse>>>> = {
  json: { cbor: (bytes) => encodeCbor(readJson(bytes)), protobuf: (bytes) => encodePb(readPbJson(bytes)) },
  raw: { cbor: canonicalCbor, protobuf: pb, raw: (bytes) => bytes },
  cbor: { cbor: canonicalCbor },
  protobuf: { protobuf: pb },
  "dag-cbor": { cbor: canonicalCbor, "dag-json": (bytes) => writeDagJson(decodeCbor(bytes)) },
  "dag-json": {
    cbor: (bytes) => encodeCbor(readDagJson(bytes)),
    "dag-json": (bytes) => writeDagJson(readDagJson(bytes)),
  },
  "dag-pb": { protobuf: pb },
};

const codecs: Readonly<Record<string, number>> = { cbor: dagCbor, protobuf: dagPb, raw, "dag-json": dagJson };

export type MakeNode = (bytes: Uint8Array) => Promise<Block>;

/** Refused like every other place that a path is looked up in: names of objects are none here. */
const own = <T>(table: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;

/**
 * How the nodes of one call are made; `hashName` is empty for the default. A dag-pb node is version 0 if it can be.
 * What it returns rejects with NodeError.
 *
 * @throws NodeError for a hash function that is none
 */
export function nodeMaker(inputName: string, format: string, hashName: string): MakeNode {
  const hash = hashName === "" ? sha256 : hashNamed(hashName);
  if (hash === undefined) throw new NodeError(`${hashName} in not a valid multihash name`);
  return async (bytes) => {
    const { parse, codec } = parserOf(inputName, format);
    return makeBlock(parse(bytes), { codec: versionZero(codec, hash) ? undefined : codec, hash, length: -1 });
  };
}

const versionZero = (codec: number, hash: HashFunction): boolean => codec === dagPb && hash === sha256;

function parserOf(inputName: string, format: string): { readonly parse: Parse; readonly codec: number } {
  const input = own(inputs, inputName);
  if (input === undefined) throw new NodeError(`no input parser for ${quote(inputName)}`);
  const name = own(spellings, format) ?? format;
  const parse = own(input, name);
  if (parse === undefined) {
    throw new NodeError(`no parser for format ${quote(format)} using input type ${quote(inputName)}`);
  }
  return { parse, codec: codecs[name] as number };
}
