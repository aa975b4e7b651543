import assert from "node:assert/strict";
import { test } from "node:test";
import { shownQuery, shownText } from "#core/util/masked_text.ts";
import { withoutSecrets } from "#core/util/secret_text.ts";

/** Returns a text whose percent sign was encoded this many times. */
const encoded = (times: number, text: string) => `%${"25".repeat(times - 1)}${text}`;

test("a value that is encoded very often is hidden, however long it is", () => {
  for (const times of [20, 7500]) {
    assert.equal(shownQuery(`a=${encoded(times, "41")}&b=1`, "redacted"), "a=***&b=1");
    assert.equal(shownText(`GET /?a=${encoded(times, "41")}`, "redacted"), "GET /?a=***");
    assert.equal(withoutSecrets(`/a/${encoded(times, "41")}/b`), "/a/mht_.../b");
  }
  assert.equal(shownQuery(`a=${encoded(3, "41")}&b=100%`, "redacted"), "a=%252541&b=100%");
});

test("a secret is hidden although its percent encoding is malformed", () => {
  assert.equal(withoutSecrets("/a/%zz%6dht_secret/b%ff"), "/a/mht_.../b%ff");
  assert.equal(shownQuery("a=%zz%26token%3D1", "redacted"), "a=***");
  assert.equal(shownQuery("%zz%74oken=1", "redacted"), "%zz%74oken=***");
});
