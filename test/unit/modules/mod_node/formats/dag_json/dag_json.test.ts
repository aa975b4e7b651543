import assert from "node:assert/strict";
import { test } from "node:test";
import * as dagCbor from "@ipld/dag-cbor";
import * as dagJson from "@ipld/dag-json";
import { CID } from "multiformats/cid";
import { decodeCbor } from "#node/formats/dag_cbor/value.ts";
import { encodeCbor } from "#node/formats/dag_cbor/write.ts";
import { readPbJson } from "#node/formats/dag_json/dag_pb_json.ts";
import { readDagJson, readJson } from "#node/formats/dag_json/read.ts";
import { writeDagJson, writeJson } from "#node/formats/dag_json/write.ts";
import { atOnce } from "#node/util/async/steps.ts";

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const cid = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";
const throughOlder = (json: string | Uint8Array) => writeJson(decodeCbor(encodeCbor(readJson(Buffer.from(json)))));

/** Input in the older form, and the output after conversion to CBOR and back. */
const older: Readonly<Record<string, string>> = {
  '{"b":1,"a":[true,null,"x"]}': '{"a":[true,null,"x"],"b":1}',
  "123": "123",
  "1.0": "1",
  "-0": "-0",
  "1e21": "1e+21",
  "1E5": "100000",
  "0.1e-7": "1e-8",
  "9007199254740993": "9007199254740992",
  "123456789012345678901234567890": "1.2345678901234568e+29",
  '{"a":1,"a":2}': '{"a":2}',
  '{"a":1} junk': '{"a":1}',
  "01": "0",
  '"\\ud800"': '"\ufffd"',
  '"\\ud83d\\ude00\\u0041"': '"\u{1F600}A"',
  '"<&>\\u2028\\b\\f\\n\\u0001"': '"\\u003c\\u0026\\u003e\\u2028\\u0008\\u000c\\n\\u0001"',
  [`{"x":{"/":"${cid}"}}`]: `{"x":{"/":"${cid}"}}`,
  [`{"/":"${cid}"}`]: `{"/":"${cid}"}`,
  [`{"/":"${cid}","y":1}`]: `{"/":"${cid}","y":1}`,
  '{"__proto__":1,"constructor":{}}': '{"__proto__":1,"constructor":{}}',
  '{"10":1,"9":2,"ü":3,"a":4}': '{"10":1,"9":2,"a":4,"ü":3}',
};

test("the older form reads numbers as floats, accepts links, and is printed as Go prints it", () => {
  for (const [given, wanted] of Object.entries(older)) assert.equal(throughOlder(given), wanted, given);
  assert.equal(throughOlder(Buffer.from("22c3282fe282ff22", "hex")), '"\ufffd(/\ufffd\ufffd\ufffd"');
});

/** Malformed input, each with the error text of go-ipfs. */
const refused: Readonly<Record<string, string>> = {
  "": "unexpected EOF",
  "{": "unexpected EOF",
  "-": "unexpected EOF",
  tru: "unexpected EOF",
  '"abc': "unexpected EOF",
  "[1,]": "invalid character ']' looking for beginning of value",
  truX: "invalid character 'X' in literal true (expecting 'e')",
  '"\\u12G4"': "invalid character 'G' in \\u hexadecimal character escape",
  "1e999": "json: cannot unmarshal number 1e999 into Go value of type float64",
  "[1e999,]": "invalid character ']' looking for beginning of value",
  '{"/":1}': "link should have been a string",
  '{"/":{"/":1}}': "link should have been a string",
  '{"/":""}': "cid too short",
  '{"a":{"/":"Qm"}}': "selected encoding not supported",
  ["[".repeat(10_001)]: "invalid character '[' exceeded max depth",
  ["[".repeat(100_000)]: "invalid character '[' exceeded max depth",
  [`${'{"a":'.repeat(10_001)}1`]: "invalid character '{' exceeded max depth",
};

test("malformed JSON is rejected with the error text of go-ipfs", () => {
  for (const [given, message] of Object.entries(refused)) {
    assert.throws(() => readJson(Buffer.from(given)), { name: "NodeError", message }, given.slice(0, 40));
  }
  assert.equal(throughOlder(`${"[".repeat(10_000)}${"]".repeat(10_000)}`).length, 20_000);
});

test("dag-json is converted to CBOR and back as the @ipld libraries do it", () => {
  const link = CID.parse(cid);
  const samples: readonly unknown[] = [
    { a: 1, b: -5, c: [link, new Uint8Array([1, 2, 255]), "ü<>&"], d: { e: null, f: true } },
    [0.5, 1e300, Number.MAX_SAFE_INTEGER],
    new Uint8Array(0),
    link,
    "text",
    { __proto__x: 1, "": {} },
  ];
  for (const sample of samples) {
    const json = dagJson.encode(sample);
    assert.equal(
      Buffer.from(encodeCbor(readDagJson(json))).toString("hex"),
      Buffer.from(dagCbor.encode(sample)).toString("hex"),
    );
    const own = writeDagJson(decodeCbor(dagCbor.encode(sample)));
    assert.deepEqual(dagJson.decode(own), dagJson.decode(json));
  }
});

test("dag-json preserves floats, large integers and bytes, which the older form loses", () => {
  const json = '{"bytes":{"/":{"bytes":"aGk"}},"float":1.0,"int":18446744073709551615,"minus":-0.0}';
  assert.equal(text(writeDagJson(decodeCbor(encodeCbor(readDagJson(Buffer.from(json)))))), json);
  assert.equal(text(writeDagJson(readDagJson(Buffer.from('{"a":{"/":{"bytes":""}}}')))), '{"a":{"/":{"bytes":""}}}');
});

test("dag-json escapes only the characters that JSON requires, because its bytes determine the CID", () => {
  const value = { "<&>": '\u2028\u2029\x7f\b\f\n"\\/', "\0": "ü😀" };
  const bytes = dagJson.encode(value);
  assert.equal(text(writeDagJson(readDagJson(bytes))), text(bytes));
  assert.equal(writeJson(readDagJson(Buffer.from('"<"'))), '"\\u003c"');
});

test("dag-json rejects padding, repeated keys, trailing values, large integers and deep nesting", () => {
  const strict: Readonly<Record<string, RegExp>> = {
    '{"/":{"bytes":"aGk="}}': /not in base64 without padding/,
    '{"a":1,"a":2}': /repeated key "a"/,
    "1 2": /after top-level value/,
    "18446744073709551616": /does not fit into 64 bits/,
    [`-${"9".repeat(1_000_000)}`]: /does not fit into 64 bits/,
    ["[".repeat(100_000)]: /exceeded max depth/,
  };
  for (const [given, reason] of Object.entries(strict)) {
    assert.throws(() => readDagJson(Buffer.from(given)), reason, given.slice(0, 40));
  }
});

test("dag-json reads -0 as an integer, and a map with the key / that is neither a link nor bytes as a map", () => {
  assert.equal(readDagJson(Buffer.from("-0")), 0n);
  assert.ok(Object.is(readDagJson(Buffer.from("-0.0")), -0));
  for (const given of ['{"/":1}', '{"/":{"bytes":1}}', '{"/":{"bytes":"aGk","x":1}}']) {
    assert.equal(text(writeDagJson(readDagJson(Buffer.from(given)))), given);
  }
});

test("dag-pb nodes are read from JSON", () => {
  const json = `{"DATA":"aGVs\\nbG8=","unknown":[{}],"links":[{"NAME":"a","sIzE":3,"cid":{"/":"${cid}"}},{"Name":null,"Cid":{"/":"${cid}"}}]}`;
  const { data, links } = atOnce(readPbJson(Buffer.from(json)));
  assert.equal(text(data as Uint8Array), "hello");
  assert.deepEqual(
    links.map(({ name, size, cid: target }) => [name, size, String(target)]),
    [
      ["a", 3, cid],
      ["", 0, cid],
    ],
  );
  assert.deepEqual(atOnce(readPbJson(Buffer.from('{"data":[1,2]}'))).data, Uint8Array.of(1, 2));
  assert.deepEqual(atOnce(readPbJson(Buffer.from("null"))), { data: undefined, links: [] });
});

/** Malformed input, each with the error text of go-ipfs. */
const badPb: Readonly<Record<string, string>> = {
  "": "unexpected end of JSON input",
  "1": 'json: cannot unmarshal number into Go value of type struct { Data []uint8 "json:\\"data\\""; Links []*format.Link "json:\\"links\\"" }',
  '{"data":1}': "json: cannot unmarshal number into Go struct field .data of type []uint8",
  '{"data":"a"}': "illegal base64 data at input byte 0",
  '{"data":"aGVsbG8"}': "illegal base64 data at input byte 4",
  '{"data":"aGVs!"}': "illegal base64 data at input byte 4",
  '{"links":{}}': "json: cannot unmarshal object into Go struct field .links of type []*format.Link",
  '{"links":[1]}': "json: cannot unmarshal number into Go struct field .links of type format.Link",
  '{"links":[{"Cid":{}}]}': "cid was incorrectly formatted",
  '{"links":[{"Cid":{"/":1}}]}': "json: cannot unmarshal number into Go struct field Link.links.Cid of type string",
  '{"links":[{"Cid":"Qm"}]}':
    'json: cannot unmarshal string into Go struct field Link.links.Cid of type struct { CidTarget string "json:\\"/\\"" }',
  [`{"links":[{"Cid":{"/":"${cid}"},"Name":1}]}`]:
    "json: cannot unmarshal number into Go struct field Link.links.Name of type string",
  [`{"links":[{"Cid":{"/":"${cid}"},"Size":-1}]}`]:
    "json: cannot unmarshal number -1 into Go struct field Link.links.Size of type uint64",
  [`{"links":[{"Cid":{"/":"${cid}"},"Size":18446744073709551616}]}`]:
    "json: cannot unmarshal number 18446744073709551616 into Go struct field Link.links.Size of type uint64",
  '{"data":"aGk="} x': "invalid character 'x' after top-level value",
  '{"data":true,"links":5}': "json: cannot unmarshal bool into Go struct field .data of type []uint8",
  '{"links":[{}]}': "link hash #0 is not valid multihash. cid too short",
};

test("malformed dag-pb JSON is rejected with the error text of go-ipfs", () => {
  for (const [given, message] of Object.entries(badPb)) {
    assert.throws(() => atOnce(readPbJson(Buffer.from(given))), { name: "NodeError", message }, given);
  }
});
