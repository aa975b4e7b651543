import assert from "node:assert/strict";
import { test } from "node:test";
import { printable } from "../../../core/net/http.ts";

test("printable escapes what could steer a terminal or end the line", () => {
  assert.equal(printable("\u001b[2J\u0007\r\n\u0000\u007f\u009b"), "\\x1b[2J\\x07\\x0d\\x0a\\x00\\x7f\\x9b");
  assert.equal(printable("\u2028\u2029\u202e\u2066\u061c"), "\\u2028\\u2029\\u202e\\u2066\\u061c");
});

test("printable leaves text of any script, and tabs, as they are", () => {
  const text = "a\tb Grüße 你好 👩‍💻 שלום";
  assert.equal(printable(text), text);
});
