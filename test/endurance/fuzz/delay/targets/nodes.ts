/** Blocks of every codec, and the documents from which blocks are made. */
import { CID } from "multiformats/cid";
import { identity } from "multiformats/hashes/identity";
import { parseHeader } from "#node/content/car/header.ts";
import { encodedObject } from "#node/content/dag/object/input.ts";
import { unixfsNode } from "#node/content/unixfs/node.ts";
import { decodeCborSteps } from "#node/formats/dag_cbor/value.ts";
import { canonicalCborSteps } from "#node/formats/dag_cbor/write.ts";
import { readPbJson } from "#node/formats/dag_json/dag_pb_json.ts";
import { readDagJsonSteps, readJsonSteps } from "#node/formats/dag_json/read.ts";
import { writeDagJsonSteps } from "#node/formats/dag_json/write.ts";
import { decodePb, encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { nodeJsonSteps } from "#node/formats/ipld/data_model.ts";
import { decodeValueSteps } from "#node/formats/ipld/js_codecs.ts";
import { linksOf, linksWithTurns } from "#node/formats/ipld/links.ts";
import { encodeUnixfs } from "#node/formats/unixfs/format.ts";
import { inSlices } from "#node/util/async/steps.ts";
import { BLOCK, type InputTarget, type Make, numbered, repeated, target, utf8 } from "../target.ts";

const cid = CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");
const cidOf = (code: number) => CID.createV1(code, cid.multihash);
const bytes = (...parts: (Uint8Array | number)[]): Uint8Array =>
  new Uint8Array(Buffer.concat(parts.map((part) => (typeof part === "number" ? Uint8Array.of(part) : part))));
const filled = (size: number, ...pattern: number[]): Uint8Array =>
  Uint8Array.from({ length: size }, (_, at) => pattern[at % pattern.length] as number);
const length32 = (major: number, length: number): Uint8Array => {
  const head = Buffer.alloc(5);
  head[0] = (major << 5) | 26;
  head.writeUInt32BE(length, 1);
  return head;
};

/** Values of dag-cbor, by the part that is repeated. */
export const cbor: Readonly<Record<string, Make<Uint8Array>>> = {
  integers: (size) => bytes(length32(4, size), new Uint8Array(size)),
  "large integers": (size) =>
    bytes(
      length32(4, Math.floor(size / 9)),
      filled(Math.floor(size / 9) * 9, 0x1b, 255, 255, 255, 255, 255, 255, 255, 255),
    ),
  floats: (size) => bytes(length32(4, Math.floor(size / 3)), filled(Math.floor(size / 3) * 3, 0xf9, 0x3c, 1)),
  "nested lists": (size) => bytes(filled(size - 1, 0x81), 0),
  "nested maps": (size) => bytes(filled(Math.floor(size / 3) * 3, 0xa1, 0x61, 0x61), 0),
  "empty maps": (size) => bytes(length32(4, size), filled(size, 0xa0)),
  "endless lists": (size) => filled(size, 0x9f),
  texts: (size) => bytes(length32(4, Math.floor(size / 2)), filled(Math.floor(size / 2) * 2, 0x61, 0x61)),
  "a long text": (size) => bytes(length32(3, size), filled(size, 0xff)),
  "a text in pieces": (size) => bytes(0x7f, filled(size, 0x60), 0xff),
  "sorted keys": (size) => mapOf(size, (at) => at),
  "unsorted keys": (size) => mapOf(size, (at, count) => count - at),
  "one key out of order": (size) => mapOf(size, (at, count) => (at === count - 1 ? 0 : at + 1)),
  "texts in short pieces": (size) => bytes(0x7f, filled(Math.floor(Math.min(size, 130_000) / 2) * 2, 0x61, 0x61), 0xff),
  "long keys": (size) => {
    const count = Math.max(1, Math.floor(size / 1010));
    const keys = Array.from({ length: count }, (_, at) =>
      bytes(0x79, 0x03, 0xe8, utf8(String(count - at).padStart(1000, "a")), 0),
    );
    return bytes(length32(5, count), ...keys);
  },
  links: (size) => {
    const link = bytes(0xd8, 42, 0x58, cid.bytes.length + 1, 0, cid.bytes);
    const count = Math.floor(size / link.length);
    return bytes(length32(4, count), ...Array.from({ length: count }, () => link));
  },
  "a long link": (size) => bytes(0xd8, 42, length32(2, size), 0, identityCid(size - 1)),
};

function mapOf(size: number, keyOf: (at: number, count: number) => number): Uint8Array {
  const count = Math.floor(size / 8);
  const entries = Buffer.alloc(count * 8);
  for (let at = 0; at < count; at += 1) {
    entries[at * 8] = 0x66;
    entries.write(keyOf(at, count).toString(36).padStart(6, "0"), at * 8 + 1, "latin1");
  }
  return bytes(length32(5, count), entries);
}

/** Makes an identity CID of about this size. */
function identityCid(size: number): Uint8Array {
  return CID.createV1(0x55, identity.digest(new Uint8Array(Math.max(0, size - 6)).fill(0xa5))).bytes;
}

/** Documents, by the part that is repeated. */
export const json: Readonly<Record<string, Make<Uint8Array>>> = {
  integers: (size) => utf8(`[${repeated("1,", size)}1]`),
  "a long integer": (size) => utf8(repeated("1", size)),
  "long integers": (size) => utf8(`[${repeated(`${"1".repeat(1000)},`, size)}1]`),
  "long floats": (size) => utf8(`[${repeated(`1.${"1".repeat(1000)}e7,`, size)}1]`),
  "nested lists": (size) => utf8("[".repeat(Math.min(size / 2, 9999)) + "]".repeat(Math.min(size / 2, 9999))),
  "nested too deeply": (size) => utf8("[".repeat(size)),
  "many nests": (size) => utf8(`[${repeated(`${"[".repeat(999)}${"]".repeat(999)},`, size)}1]`),
  "nested maps": (size) => utf8(`${'{"a":'.repeat(Math.min(size / 6, 9999))}1${"}".repeat(Math.min(size / 6, 9999))}`),
  "empty maps": (size) => utf8(`[${repeated("{},", size)}1]`),
  texts: (size) => utf8(`[${repeated('"a",', size)}1]`),
  "a long text": (size) => utf8(`"${repeated("a", size)}"`),
  escapes: (size) => utf8(`"${repeated("\\u00e9", size)}"`),
  "half surrogates": (size) => utf8(`"${repeated("\\ud800", size)}"`),
  "no UTF-8": (size) => bytes(0x22, filled(size, 0xff), 0x22),
  blanks: (size) => utf8(repeated(" ", size)),
  "sorted keys": (size) => utf8(`{${numbered(size, (at) => `"${String(at).padStart(7, "0")}":1`)}}`),
  "unsorted keys": (size) => utf8(`{${numbered(size, (at) => `"${9_999_999 - at}":1`)}}`),
  "one key": (size) => utf8(`{${repeated('"a":1,', size)}"a":1}`),
  "long keys": (size) => utf8(`{${numbered(size, (at) => `"${"a".repeat(1000)}${at}":1`)}}`),
  links: (size) => utf8(`[${repeated(`{"/":"${cid}"},`, size)}1]`),
  "bad links": (size) => utf8(`[${repeated('{"/":"x"},', size)}1]`),
  "bad bytes": (size) => utf8(`[${repeated('{"/":{"bytes":"="}},', size)}1]`),
  "a long link": (size) => utf8(`{"/":"k${repeated("2a", size)}"}`),
  "long links": (size) => utf8(`[${repeated(`{"/":"z${"2a".repeat(4000)}"},`, size)}1]`),
  "longer links": (size) => utf8(`[${repeated(`{"/":"k${"2a".repeat(40_000)}"},`, size)}1]`),
  bytes: (size) => utf8(`{"/":{"bytes":"${repeated("AAAA", size)}"}}`),
};

const node =
  (field: string, wrap: (size: number) => string): Make<Uint8Array> =>
  (size) =>
    utf8(`{"${field}":${wrap(size)}}`);

const pbDocuments: Readonly<Record<string, Make<Uint8Array>>> = {
  ...json,
  links: node(
    "Links",
    (size) => `[${repeated(`{"Name":"a","Size":1,"Hash":"${cid}","Cid":{"/":"${cid}"}},`, size)}{}]`,
  ),
  "a long CID": node("links", (size) => `[{"Cid":{"/":"k${repeated("2a", size)}"}}]`),
  "bad CIDs": node("links", (size) => `[${repeated('{"Cid":{"/":"x"}},', size)}{}]`),
  "bad sizes": node("links", (size) => `[${repeated('{"Size":-1},', size)}{}]`),
  data: node("data", (size) => `"${repeated("AAAA", size)}"`),
  "odd data": node("data", (size) => `"${repeated("AA\\n", size)}="`),
  "data in numbers": node("data", (size) => `[${repeated("1,", size)}1]`),
  "unknown fields": (size) => utf8(`{${numbered(size, (at) => `"x${at}":1`)}}`),
};

const xml: Readonly<Record<string, Make<Uint8Array>>> = {
  nested: (size) => utf8(`${repeated("<a>", size / 2)}${repeated("</a>", size / 2)}`),
  links: (size) => utf8(`<Node>${repeated("<Links><Name>a</Name></Links>", size)}</Node>`),
  entities: (size) => utf8(`<Node><Data>${repeated("&amp;", size)}</Data></Node>`),
  ampersands: (size) => utf8(`<Node><Data>${repeated("&", size)}`),
  "a cut entity": (size) => utf8(`<Node><Data>&${repeated("a", size)}`),
  comments: (size) => utf8(`<Node>${repeated("<!--a-->", size)}</Node>`),
  dashes: (size) => utf8(`<Node><!--${repeated("-", size)}></Node>`),
  brackets: (size) => utf8(`<!${repeated("<", size)}`),
  quotes: (size) => utf8(`<!${repeated("'\"", size)}`),
  attributes: (size) => utf8(`<Node ${repeated("a='b' ", size)}></Node>`),
  blanks: (size) => utf8(`<Node ${repeated(" ", size)}</Node>`),
  "texts in pieces": (size) => utf8(`<Node><Data>${repeated("a<![CDATA[b]]>", size)}</Data></Node>`),
  "an illegal character": (size) => utf8(`<Node>${repeated("\n", size)}\u0001</Node>`),
  instructions: (size) => utf8(repeated("<?a b?>", size)),
  "a long name": (size) => utf8(`<${repeated("a", size)}>`),
  "names with colons": (size) => utf8(`<${repeated("a:", size)}>`),
};

const link = (name: string) => ({ name, size: 1, cid });
export const pb: Readonly<Record<string, Make<Uint8Array>>> = {
  links: (size) => encodePb({ data: undefined, links: Array.from({ length: size / 46 }, () => link("")) }),
  "named links": (size) =>
    encodePb({
      data: undefined,
      links: Array.from({ length: size / 54 }, (_, at) => link(String(at).padStart(8, "0"))),
    }),
  "unsorted links": (size) =>
    bytes(
      ...Array.from({ length: size / 54 }, (_, at) =>
        encodePb({ data: undefined, links: [link(String(99_999_999 - at))] }),
      ),
    ),
  "links of one long name": (size) =>
    bytes(
      ...Array.from({ length: Math.ceil(size / 10_050) }, () =>
        encodePb({ data: undefined, links: [link("a".repeat(10_000))] }),
      ),
    ),
  "empty links": (size) => filled(Math.floor(size / 2) * 2, 0x12, 0),
  "empty data": (size) => filled(Math.floor(size / 2) * 2, 0x0a, 0),
  groups: (size) => filled(size, 0x1b),
  numbers: (size) => filled(Math.floor(size / 2) * 2, 0x20, 0),
  "a long CID": (size) =>
    encodePb({ data: undefined, links: [{ name: "", size: 0, cid: CID.decode(identityCid(size)) }] }),
  blocksizes: (size) =>
    encodePb({
      data: encodeUnixfs({ type: "File", blocksizes: Array.from({ length: size / 2 }, () => 1) }),
      links: [],
    }),
  "packed blocksizes": (size) =>
    encodePb({ data: bytes(8, 2, 0x22, ...varint(size), new Uint8Array(size)), links: [] }),
  "a long blocksize": (size) => encodePb({ data: bytes(8, 2, 0x22, ...varint(size), filled(size, 0xff)), links: [] }),
  "a shard": (size) =>
    encodePb({
      data: encodeUnixfs({ type: "HAMTShard", data: filled(size, 0xff), hashType: 0x22, fanout: 256 }),
      links: [],
    }),
};

async function* oneOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function varint(value: number): number[] {
  const made: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    made.push(rest >= 128 ? (rest % 128) | 0x80 : rest);
    if (rest < 128) return made;
  }
}

export const nodeTargets: readonly InputTarget[] = [
  target("dag-cbor", BLOCK, cbor, (block) => inSlices(decodeCborSteps(block))),
  target("links of dag-cbor", BLOCK, cbor, (block) => linksWithTurns(cidOf(0x71), block)),
  target("dag-cbor, made canonical", BLOCK, cbor, (block) => inSlices(canonicalCborSteps(block))),
  target("dag-cbor as JSON", BLOCK, cbor, (block) => inSlices(nodeJsonSteps(cidOf(0x71), block))),
  target("dag-cbor as dag-json", BLOCK, cbor, async (block) =>
    inSlices(writeDagJsonSteps(await inSlices(decodeCborSteps(block)))),
  ),
  target("dag-cbor as plain values", BLOCK, cbor, (block) => inSlices(decodeValueSteps(cidOf(0x71), block))),
  target("dag-json", BLOCK, json, (block) => inSlices(readDagJsonSteps(block))),
  target("links of dag-json", BLOCK, json, (block) => linksWithTurns(cidOf(0x0129), block)),
  target("JSON of dag/put", BLOCK, json, (block) => inSlices(readJsonSteps(block))),
  target("dag-pb in JSON", BLOCK, pbDocuments, (block) => inSlices(readPbJson(block))),
  target("objects in JSON", BLOCK, pbDocuments, (block) => encodedObject(oneOf(block), "json", "text")),
  target("objects in JSON with base64", BLOCK, { "odd data": pbDocuments["odd data"] as Make<Uint8Array> }, (block) =>
    encodedObject(oneOf(block), "json", "base64"),
  ),
  target("objects in XML", BLOCK, xml, (block) => encodedObject(oneOf(block), "xml", "text")),
  target("dag-pb", BLOCK, pb, decodePb),
  target("links of dag-pb", BLOCK, pb, (block) => linksOf(cid, block)),
  target("dag-pb as JSON", BLOCK, pb, (block) => inSlices(nodeJsonSteps(cid, block))),
  target("UnixFS", BLOCK, pb, (block) => unixfsNode(cid, block)),
  target("headers of archives", BLOCK, { ...cbor, roots: (size) => rootsOf(size) }, parseHeader),
];

function rootsOf(size: number): Uint8Array {
  const link = bytes(0xd8, 42, 0x58, cid.bytes.length + 1, 0, cid.bytes);
  const count = Math.floor(size / link.length);
  const roots = bytes(length32(4, count), ...Array.from({ length: count }, () => link));
  return bytes(0xa2, 0x65, utf8("roots"), roots, 0x67, utf8("version"), 1);
}
