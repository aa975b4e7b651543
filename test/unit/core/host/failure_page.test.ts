import assert from "node:assert/strict";
import { test } from "node:test";
import { failurePage } from "#core/host/failure_page.ts";
import type { Change } from "#core/types.ts";

test("the page of a failed reload makes control characters of errors visible", () => {
  const error = {
    code: "MODULE_FAILED",
    message: "a\0b \u001b[31mred\n<second> line \u202egpj",
    place: { file: "/apps/mod_\u202esj.js", line: 3, text: "const \u0007 = 1;" },
  };
  const page = failurePage([{ what: "reload shop", result: "failed", error } as unknown as Change]);
  assert.doesNotMatch(page, /[[\p{Cc}\p{Bidi_Control}]--\n]/v);
  assert.match(page, /a\\x00b \\x1b\[31mred\n&#60;second&#62; line \\u202egpj/);
  assert.match(page, /mod_\\u202esj\.js:3.*\n\n<b>3 \|<\/b> const \\x07 = 1;/);
});
