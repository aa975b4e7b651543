import assert from "node:assert/strict";
import { test } from "node:test";
import * as dagCbor from "@ipld/dag-cbor";
import { CID } from "multiformats/cid";
import { cborLinks, decodeCbor, member } from "#node/formats/dag_cbor/value.ts";
import { canonicalCbor, encodeCbor } from "#node/formats/dag_cbor/write.ts";
import { writeJson } from "#node/formats/dag_json/write.ts";
import { decodeValueSteps } from "#node/formats/ipld/js_codecs.ts";
import { atOnce } from "#node/util/async/steps.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const unhex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));
const cid = CID.parse("bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq");
const other = CID.parse("QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN");

const samples: readonly unknown[] = [
  null,
  true,
  "",
  "ü漢\u{1F600}",
  0,
  23,
  24,
  255,
  256,
  65535,
  65536,
  2 ** 32 - 1,
  2 ** 32,
  Number.MAX_SAFE_INTEGER,
  2n ** 63n - 1n,
  2n ** 64n - 1n,
  -1,
  -24,
  -25,
  -(2 ** 40),
  -(2n ** 63n),
  0.5,
  1e300,
  -1e-300,
  new Uint8Array([1, 2, 3]),
  [],
  {},
  [[[]], {}],
  cid,
  { link: cid, list: [other, 1, "x"], bb: { a: 1, aa: 2, b: 3 }, "": null },
  Array.from({ length: 300 }, (_, at) => at * 1000),
];

test("output of @ipld/dag-cbor is recognized as canonical and survives decoding and encoding", () => {
  for (const sample of samples) {
    const bytes = dagCbor.encode(sample);
    assert.equal(canonicalCbor(bytes).buffer, bytes.buffer, "the bytes themselves");
    assert.equal(hex(encodeCbor(decodeCbor(bytes))), hex(bytes));
  }
});

test("a strict node, which the library decodes, and an equal lenient node give callers the same value", () => {
  const link = CID.createV1(dagCbor.code, other.multihash);
  const value = (hex: string) => atOnce(decodeValueSteps(link, unhex(hex)));
  for (const [strict, lenient] of [
    ["a1616183010203", "bf61619f010203ffff"],
    ["1bffffffffffffffff", "1bffffffffffffffff00"],
    ["a1695f5f70726f746f5f5f01", "a1695f5f70726f746f5f5f1801"],
    ["f6", "f7"],
    ["fb3ff8000000000000", "f93e0000"],
    ["61ff", "7f61ffff"],
  ] as const) {
    assert.deepEqual(value(lenient), value(strict), strict);
  }
  assert.equal(value("1bffffffffffffffff"), 2n ** 64n - 1n);
  assert.throws(() => value("a2616101616102"), /repeated key "a"/);
  assert.throws(() => value("c101"), /missing an unmarshaller for tag 1/);
});

test("links are listed in the order in which the node contains them", () => {
  const bytes = dagCbor.encode({ a: [cid, { b: other }], c: cid });
  assert.deepEqual(cborLinks(bytes).map(String), [cid, other, cid].map(String));
});

/** Encodings that other programs write, each with its canonical form. */
const rewritten: Readonly<Record<string, string>> = {
  a2616201616101: "a2616101616201",
  a26262620161610a: "a261610a62626201",
  "9f01ff": "8101",
  bf616101ff: "a1616101",
  "5f41014102ff": "420102",
  "7f61616162ff": "626162",
  f7: "f6",
  fa3f800000: "fb3ff0000000000000",
  f93c00: "fb3ff0000000000000",
  f98001: "fbbe70000000000000",
  1800: "00",
  190001: "01",
  "1a0000ffff": "19ffff",
  "1b0000000000000001": "01",
  "5801ff": "41ff",
  a000: "a0",
  "62c328": "62c328",
};

test("non-canonical encodings of a value are converted to the canonical one", () => {
  for (const [given, wanted] of Object.entries(rewritten))
    assert.equal(hex(canonicalCbor(unhex(given))), wanted, given);
});

/** Malformed input and the error text of go-ipfs; where go-ipfs has none, our own. */
const refused: Readonly<Record<string, string>> = {
  "": "unexpected EOF",
  a1: "unexpected EOF",
  "9b7fffffffffffffff": "unexpected EOF",
  bb7fffffffffffffff: "unexpected EOF",
  "1a00": "unexpected EOF",
  f8ff: "Invalid majorByte: 0xf8",
  ff: "Invalid majorByte: 0xff",
  "1c": "decodeUint: Invalid descriptor: 28",
  a10102: "unexpected token <u:1>; expected key string or end of map",
  a1f601: "unexpected token <0>; expected key string or end of map",
  a1a00000: "unexpected mapOpen; expected map key",
  a1d82a410001: "unexpected token _42:<x:[0]>; expected key string or end of map",
  c101: "missing an unmarshaller for tag 1",
  d82a00: "unmarshal error: cannot assign _42:<u:0> to slice field",
  d82a40: "link value was empty",
  d82a4101: "invalid multibase on IPLD link",
  d82a420001: "link value should have been bytes",
  d82ad82a4100: "unsupported multiple tags on a single data item",
  "5f6161ff": "cbor: expect bytes or string major type in indefinite string/bytes; got: 96, byte: 97",
  "5bffffffffffffffff": "cbor: positive integer is out of length",
  "9bffffffffffffffff": "cbor: positive integer is out of length",
  "5a02000001": "cbor: decoding rejected oversized byte field: 33554433 is too large",
  "7a02000001": "cbor: decoding rejected oversized string field: 33554433 is too large",
  "7b1000000000000001": "cbor: decoding rejected oversized string field: 1152921504606846977 is too large",
  bf6161ff: "unexpected break; expected value in indefinite-length map",
  a26161016161: 'repeated key "a"',
  a3616201616102616103: 'repeated key "a"',
  a4616101616201616301616202: 'repeated key "b"',
  a4616101616301616202616303: 'repeated key "c"',
  [`7f${"6161".repeat(65_537)}ff`]: "cbor: a string in more than 65536 pieces",
  "3bffffffffffffffff": "cbor: negative integer out of rage of int64 type",
};

test("malformed CBOR is rejected with the error text of go-ipfs", () => {
  for (const [given, message] of Object.entries(refused)) {
    assert.throws(() => canonicalCbor(unhex(given)), { name: "NodeError", message }, given);
    assert.throws(() => cborLinks(unhex(given)), { name: "NodeError", message }, given);
  }
});

test("a text may consist of any number of empty pieces", () => {
  const pieces = Buffer.concat([unhex("7f"), Buffer.alloc(1_000_000, 0x60), unhex("6161ff")]);
  assert.equal(hex(canonicalCbor(pieces)), "6161");
});

test("a truncated node is rejected, whatever its length", () => {
  const bytes = dagCbor.encode(samples.at(-2));
  for (let length = 0; length < bytes.length; length += 1) {
    assert.throws(() => canonicalCbor(bytes.subarray(0, length)), /^NodeError: (unexpected EOF|link value)/);
  }
});

test("deeply nested values do not overflow the stack, and the depth is limited", () => {
  const nested = (levels: number) => Buffer.concat([Buffer.alloc(levels, 0x81), unhex("f6")]);
  const deep = nested(100_000);
  assert.equal(canonicalCbor(deep).length, deep.length);
  assert.deepEqual(cborLinks(deep), []);
  const loose = Buffer.concat([Buffer.alloc(100_000, 0x9f), unhex("f6"), Buffer.alloc(100_000, 0xff)]);
  assert.ok(deep.equals(canonicalCbor(loose)));
  assert.throws(() => cborLinks(nested(1_000_001)), /nested deeper than 1000000 levels/);
  assert.throws(() => writeJson(decodeCbor(deep)), /exceeded max depth$/);
});

test("keys such as __proto__ are ordinary keys of a map", () => {
  const bytes = dagCbor.encode(JSON.parse('{"__proto__":{"x":1},"constructor":2,"10":3,"9":4}'));
  const value = decodeCbor(bytes);
  assert.equal(writeJson(value), '{"10":3,"9":4,"__proto__":{"x":1},"constructor":2}');
  assert.equal(member(value, "constructor"), 2n);
  assert.throws(() => member(value, "toString"), { message: "no such link found" });
  assert.equal(({} as { x?: unknown }).x, undefined);
});

test("member looks up one key or index in a value", () => {
  const value = decodeCbor(dagCbor.encode({ list: [1, "two"], text: "t", ü: null }));
  const list = member(value, "list");
  assert.equal(member(list, "0"), 1n);
  assert.equal(member(value, "ü"), null);
  assert.throws(() => member(list, "2"), { message: "array index out of range" });
  assert.throws(() => member(list, "-1"), { message: "array index out of range" });
  assert.throws(() => member(list, "x"), { message: 'strconv.Atoi: parsing "x": invalid syntax' });
  assert.throws(() => member(member(value, "text"), "x"), {
    message: "tried to resolve through object that had no links",
  });
});
