import assert from "node:assert/strict";
import { test } from "node:test";
import { getAt, parseJson, printJson, setAt, sorted } from "#node/storage/repo/json.ts";

/** The texts of `config --json` in go-ipfs. */
const faults: Readonly<Record<string, string>> = {
  "{bad": "invalid character 'b' looking for beginning of object key string",
  "": "unexpected end of JSON input",
  "1 2": "invalid character '2' after top-level value",
  "[1,]": "invalid character ']' looking for beginning of value",
  nul: "invalid character ' ' in literal null (expecting 'l')",
  '"a': "unexpected end of JSON input",
  '{"a" 1}': "invalid character '1' after object key",
  "{1}": "invalid character '1' looking for beginning of object key string",
  "01": "invalid character '1' after top-level value",
  '"\\x"': "invalid character 'x' in string escape code",
  "<a>": "invalid character '<' looking for beginning of value",
  "'": "invalid character '\\'' looking for beginning of value",
  trux: "invalid character 'x' in literal true (expecting 'e')",
  "[1 2]": "invalid character '2' after array element",
  "-": "invalid character ' ' in numeric literal",
  "1.": "invalid character ' ' after decimal point in numeric literal",
  "1e": "invalid character ' ' in exponent of numeric literal",
  '"\\u12"': "invalid character '\"' in \\u hexadecimal character escape",
  '"\\u12g4"': "invalid character 'g' in \\u hexadecimal character escape",
  é: "invalid character 'Ã' looking for beginning of value",
  '{"a":1 x': "invalid character 'x' after object key:value pair",
  '{"a":1,}': "invalid character '}' looking for beginning of object key string",
  '{"a":': "unexpected end of JSON input",
  "[1": "unexpected end of JSON input",
  '"\t"': "invalid character '\\t' in string literal",
  t: "invalid character ' ' in literal true (expecting 'r')",
  "+1": "invalid character '+' looking for beginning of value",
  "1ea": "invalid character 'a' in exponent of numeric literal",
  "[tru]": "invalid character ']' in literal true (expecting 'e')",
};

test("invalid JSON is reported with the texts of Go", () => {
  for (const [text, message] of Object.entries(faults)) assert.throws(() => parseJson(text), { message }, text);
});

test("every kind of malformed document has a reason", () => {
  const whole = '{"a":[1,-2.5e3,"x\\u00e9\\n",null,true],"b":{"c":{}}}';
  assert.deepEqual(parseJson(whole), JSON.parse(whole));
  for (let length = 0; length < whole.length; length += 1) {
    assert.throws(() => parseJson(whole.slice(0, length)), /^NodeError: (invalid character|unexpected end)/);
  }
});

test("documents are printed with two blanks, sorted keys, and Go's escapes", () => {
  const document = JSON.parse('{"b":["<&>"],"a":{},"10":[],"9":1,"é":null,"Z":1e21}');
  const expected = [
    "{",
    '  "10": [],',
    '  "9": 1,',
    '  "Z": 1e+21,',
    '  "a": {},',
    '  "b": [',
    '    "\\u003c\\u0026\\u003e"',
    "  ],",
    '  "é": null',
    "}",
  ];
  assert.equal(printJson(document), expected.join("\n"));
  assert.equal(printJson({ b: 1, a: 2 }, "kept"), '{\n  "b": 1,\n  "a": 2\n}');
  assert.deepEqual(Object.keys(sorted({ b: 1, a: 2 }) as object), ["a", "b"]);
  const keys = ["a", "Z", "", "é", "\uffff", "😀", "ab"];
  const bytewise = keys.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  assert.deepEqual(Object.keys(sorted(Object.fromEntries(keys.map((key) => [key, 1]))) as object), bytewise);
});

test("paths lead into objects only, and create missing ones", () => {
  const document = { a: { b: null, c: "text" } };
  assert.equal(getAt(document, "a.c"), "text");
  assert.throws(() => getAt(document, "a.x"), { message: "a key has no attributes" });
  assert.throws(() => getAt(document, "toString"), { message: " key has no attributes" });
  assert.throws(() => getAt(document, "a.c.d"), { message: "a.c key is not a map" });
  assert.deepEqual(setAt(document, "a.b.x.y", 1), { a: { b: { x: { y: 1 } }, c: "text" } });
  assert.deepEqual(setAt({}, "__proto__.x", 1), JSON.parse('{"__proto__":{"x":1}}'));
  assert.throws(() => setAt(document, "a.c.d", 1), { message: "a.c key is not a map" });
});
