import assert from "node:assert/strict";
import { test } from "node:test";
import { SNIFFED_BYTES, typeByContent } from "#modules/mod_http_gateway/media/sniff.ts";

const typeOf = (text: string, isWhole = true) => typeByContent(Buffer.from(text), isWhole);
const PLAIN = "text/plain; charset=utf-8";
const XML = "text/xml; charset=utf-8";

test("a file that is a JSON object or list has the type of JSON", () => {
  const types = ['{"a":1}', '{"a":1}\n', " [1, true, null]", "{}", "[]", '{"\\u00e9":"\\"x"}'].map((text) =>
    typeOf(text),
  );
  assert.deepEqual(new Set(types), new Set(["application/json"]));
});

test("a single value, several values and broken JSON have the type of text", () => {
  const texts = ['"x"', "1", "true", "null", '{"a":', '{"a":1} x', '{"a":1}\n{"b":2}', "[link]: x", "{key}", "[1]: x"];
  for (const text of texts) assert.equal(typeOf(text), PLAIN, text);
});

test("the first bytes of a long JSON file suffice, wherever they are cut off", () => {
  const long = JSON.stringify({ list: Array.from({ length: 400 }, (_, at) => ({ at, text: `"é${at}\n`, yes: true })) });
  for (let cut = SNIFFED_BYTES - 60; cut < SNIFFED_BYTES; cut += 1) {
    assert.equal(typeByContent(Buffer.from(long).subarray(0, cut), false), "application/json", String(cut));
  }
  assert.equal(typeOf(`[a note] ${long}`, false), PLAIN);
});

test("an XML document only has the type of a page if it declares one", () => {
  const types = [
    '<?xml version="1.0"?><a/>',
    '<?xml version="1.0"?><body/>',
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>',
    '<?xml version="1.0"?>\n<!-- x -->\n<svg xmlns="http://www.w3.org/2000/svg"/>',
    '<?xml version="1.0"?><rss version="2.0"/>',
    '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"/>',
    "<!doctype html><p>",
    "<svg/>",
  ].map((text) => typeOf(text));
  assert.deepEqual(types, [
    XML,
    XML,
    "application/xhtml+xml",
    "image/svg+xml",
    "application/rss+xml",
    "application/atom+xml",
    "text/html",
    "image/svg+xml",
  ]);
});
