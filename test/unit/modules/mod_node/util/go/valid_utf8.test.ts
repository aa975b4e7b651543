import assert from "node:assert/strict";
import { isUtf8 } from "node:buffer";
import { test } from "node:test";
import { goJson, quotedJson, validUtf8 } from "#node/util/go/text.ts";

/**
 * Decodes as Go does: the longest character at each offset, and U+FFFD for a byte that begins none.
 */
function slowly(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((each) => at + each <= bytes.length && isUtf8(bytes.subarray(at, at + each)));
    text += length === undefined ? "\ufffd" : bytes.toString("utf8", at, at + length);
    at += length ?? 1;
  }
  return text;
}

test("each byte outside a valid character becomes U+FFFD, and no other byte does", () => {
  const edges = [
    0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff,
  ];
  for (const first of edges) {
    for (const second of edges) {
      for (const third of edges) {
        for (const rest of [[], [0x80], [0xbf, 0x41], [0xc3, 0xa9]]) {
          const bytes = Buffer.from([first, second, third, ...rest]);
          assert.equal(String(Buffer.from(validUtf8(bytes))), slowly(bytes), bytes.toString("hex"));
        }
      }
    }
  }
});

test("JSON of bytes that are not UTF-8 escapes each of them, and the rest as in other texts", () => {
  const letters = ["a", '"', "\\", "\n", "\b", "\0", "\x7f", "<&>", "\u2028", "\u2029", "é", "\ufffd", "😀"];
  for (const one of letters) {
    for (const other of letters) {
      const bytes = Buffer.concat([Buffer.from(one), Buffer.of(0xff), Buffer.from(other), Buffer.of(0xe2, 0x80)]);
      const parts = [one, other].map((text) => goJson(text).slice(1, -1));
      assert.equal(quotedJson(bytes), `"${parts[0]}\\ufffd${parts[1]}\\ufffd\\ufffd"`);
    }
  }
});

test("long texts are escaped as short ones are", () => {
  const letters = ["a", '"', "\\", "\n", "\b", "\f", "\\b", "\0", "<&>", "\u2028", "\u2029", "\u20ac", "é", "😀"];
  const pieces = Array.from({ length: 40_000 }, (_, at) => letters[(at * 31 + (at >> 5)) % letters.length] as string);
  const text = pieces.join("");
  assert.ok(goJson(text).length > 100_000);
  assert.equal(goJson(text), `"${pieces.map((piece) => goJson(piece).slice(1, -1)).join("")}"`);
  assert.equal(goJson({ a: pieces }), `{"a":[${pieces.map((piece) => goJson(piece)).join(",")}]}`);
});
