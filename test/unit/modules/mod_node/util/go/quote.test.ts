import assert from "node:assert/strict";
import { test } from "node:test";
import { quote } from "#node/util/go/text.ts";

/** Quotes one character as Go's `%q` does. */
function quotedLetter(letter: string): string {
  const name = '"\\\n\r\t\v\f\b\x07'.indexOf(letter);
  if (name >= 0) return `\\${'"\\nrtvfba'[name]}`;
  if (letter === " " || !/[\p{C}\p{Z}]/u.test(letter)) return letter;
  const code = letter.codePointAt(0) as number;
  // A lone surrogate represents a byte that is not UTF-8.
  if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code & 0xff).toString(16)}`;
  if (code < 0x20) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

test("every character of a long text is quoted as it is by itself", () => {
  const letters = Array.from({ length: 0x110000 / 16 }, (_, at) => String.fromCodePoint(at * 16 + (at % 16)));
  letters.push(
    ...Array.from({ length: 256 }, (_, at) => String.fromCharCode(at)),
    "\u{10ffff}",
    "\ud800",
    "a",
    "\udc00",
  );
  for (const before of ["", "x"]) {
    const text = before + letters.join(before);
    const expected = Array.from(text, quotedLetter).join("");
    assert.ok(quote(text) === `"${expected}"`, "the texts differ");
  }
});

test("short texts are quoted", () => {
  const cases: Readonly<Record<string, string>> = {
    "": '""',
    "a b": '"a b"',
    'a"\0': '"a\\"\\x00"',
    "ä\u200b": '"ä\\u200b"',
  };
  for (const [text, expected] of Object.entries(cases)) assert.equal(quote(text), expected);
});
