import assert from "node:assert/strict";
import { test } from "node:test";
import { escape_html, html_page, printable, size_text } from "#core/net/http.ts";

test("printable escapes what could control a terminal or end the line", () => {
  assert.equal(printable("\u001b[2J\u0007\r\n\u0000\u007f\u009b"), "\\x1b[2J\\x07\\x0d\\x0a\\x00\\x7f\\x9b");
  assert.equal(printable("\u2028\u2029\u202e\u2066\u061c"), "\\u2028\\u2029\\u202e\\u2066\\u061c");
});

test("printable leaves text of any script, and tabs, unchanged", () => {
  const text = "a\tb Grüße 你好 👩‍💻 שלום";
  assert.equal(printable(text), text);
});

test("escape_html leaves nothing that HTML would interpret", () => {
  assert.equal(escape_html(`<a href="x" title='y'>&`), "&#60;a href=&#34;x&#34; title=&#39;y&#39;&#62;&#38;");
});

test("html_page escapes only the title, and needs no other files", () => {
  const page = html_page({ title: "a < b", style: "p { margin: 0 }", body: "<p>&amp;</p>" });
  assert.match(page, /^<!DOCTYPE html>\n<html lang="en">/);
  assert.ok(page.includes("<title>a &#60; b</title>"));
  assert.ok(page.includes("<style>p { margin: 0 }</style>"));
  assert.ok(page.includes("<main>\n<p>&amp;</p>\n</main>"));
  assert.doesNotMatch(page, /<script|src=|href=|@import/);
});

test("size_text rounds to a readable number", () => {
  assert.deepEqual([0, 999, 1000, 99_400, 999_500, 1e9, 2e15].map(size_text), [
    "0 B",
    "999 B",
    "1.0 kB",
    "99.4 kB",
    "1.0 MB",
    "1.0 GB",
    "2 PB",
  ]);
});
