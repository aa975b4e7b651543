import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeBase64 } from "#node/util/go/base64.ts";
import { JsonReader } from "#node/util/go/json.ts";
import { GoText, goJson, JsonText, quotedJson, validUtf8 } from "#node/util/go/text.ts";

function tokens(text: string, extent: "document" | "first"): unknown[] {
  const reader = new JsonReader(Buffer.from(text), extent);
  const found: unknown[] = [];
  for (;;) {
    const token = reader.next();
    const text = Buffer.from(reader.text).toString();
    found.push(token === "key" || token === "text" ? [token, text] : token === "number" ? reader.number : token);
    if (token === "end") return found;
  }
}

test("a document is read token by token", () => {
  const text = ' { "a" : [ 1 , -2.5e+3 , true , null ] , "b\\n" : { } , "" : "\\u00e9" } ';
  assert.deepEqual(tokens(text, "document"), [
    "{",
    ["key", "a"],
    "[",
    "1",
    "-2.5e+3",
    "true",
    "null",
    "]",
    ["key", "b\n"],
    "{",
    "}",
    ["key", ""],
    ["text", "é"],
    "}",
    "end",
  ]);
});

test("input after the first value is ignored with `first`, and an error with `document`", () => {
  assert.deepEqual(tokens("1 x", "first"), ["1", "end"]);
  assert.throws(() => tokens("1 x", "document"), { message: "invalid character 'x' after top-level value" });
});

test("errors at the end of a document report a blank, and those of a stream do not", () => {
  assert.throws(() => tokens("tru", "document"), { message: "invalid character ' ' in literal true (expecting 'e')" });
  assert.throws(() => tokens("tru", "first"), { message: "unexpected EOF" });
  assert.throws(() => tokens("", "document"), { message: "unexpected end of JSON input" });
});

test("valid JSON is read as JavaScript reads it", () => {
  const samples = ['"\\ud83d\\ude00\\/\\\\\\"\\b\\f"', '"\\ud83dx"', '"\\ude00"', '"\\ud83d\\ud83d\\ude00"'];
  for (const sample of samples) {
    assert.deepEqual(tokens(sample, "document")[0], ["text", JSON.parse(sample).toWellFormed()], sample);
  }
});

test("each byte that is not valid UTF-8 is replaced by itself", () => {
  const bytes = Buffer.from("61c328e282ffed a080f0908d88".replaceAll(" ", ""), "hex");
  assert.equal(Buffer.from(validUtf8(bytes)).toString(), "a\ufffd(\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\u{10348}");
  assert.equal(quotedJson(Buffer.from("c3283c", "hex")), '"\\ufffd(\\u003c"');
  assert.equal(goJson({ Data: new GoText(Buffer.from("ff08", "hex")) }), '{"Data":"\\ufffd\\u0008"}');
  assert.equal(String(new GoText(Buffer.from("ff41", "hex"))), "\ufffdA");
});

test("control characters are escaped by number, except for three", () => {
  assert.equal(goJson("\b\f\n\r\t\0\\b\\\\f"), '"\\u0008\\u000c\\n\\r\\t\\u0000\\\\b\\\\\\\\f"');
  assert.equal(goJson(new JsonText('{"2":1,"1":2}')), '{"2":1,"1":2}');
});

test("base64 may have line breaks, needs padding, and errors name the offset", () => {
  for (const text of ["", "aGVsbG8=", "aGVs\r\nbG8=\n", "aGk=", "YQ==", "YQ=\n="]) {
    assert.deepEqual(decodeBase64(text), Buffer.from(text, "base64"), text);
  }
  const faults: [text: string, at: number][] = [
    ["a", 0],
    ["!!!!", 0],
    ["aGVsbG8", 4],
    ["aGVs!", 4],
    ["=", 0],
    ["a=", 1],
    ["YQ=", 3],
    ["YQ=x", 2],
    ["YQ==x", 4],
    ["aGk=x", 4],
  ];
  for (const [text, at] of faults) {
    assert.throws(() => decodeBase64(text), { message: `illegal base64 data at input byte ${at}` }, text);
  }
});
