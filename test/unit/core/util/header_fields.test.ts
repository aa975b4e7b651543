import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ResponseHeaders } from "#core/types.ts";
import { wireFields, wireName } from "#core/util/header_fields.ts";

describe("response header fields", () => {
  test("have dashes instead of underscores, and each word begins with a capital", () => {
    assert.equal(wireName("content_type"), "Content-Type");
    assert.equal(wireName("www_authenticate"), "Www-Authenticate");
    assert.equal(wireName("x_MiXeD"), "X-MiXeD");
    assert.equal(wireName("etag"), "Etag");
  });

  test("have one line for each value of a list, and none for undefined", () => {
    assert.deepEqual(wireFields({ set_cookie: ["a=1", "b=2"], age: 5, vary: undefined }, false), [
      "Set-Cookie",
      "a=1",
      "Set-Cookie",
      "b=2",
      "Age",
      "5",
    ]);
  });

  test("cannot contain line breaks, control characters and values of other types", () => {
    const values: unknown[] = ["a\r\nSet-Cookie: b", "a\nb", "\0", "ā", true, {}, ["ok", "bad\n"]];
    for (const value of values) {
      assert.throws(() => wireFields({ x_test: value } as ResponseHeaders, false), {
        code: "HEADER_INVALID",
        message: /X-Test/,
      });
    }
    assert.throws(() => wireFields({ "bad name": "x" }, false), { code: "HEADER_INVALID" });
    assert.throws(() => wireFields({ "a\r\nb": "x" }, false), { code: "HEADER_INVALID" });
  });

  test("that belong to an HTTP/1 connection are not sent over HTTP/2", () => {
    assert.deepEqual(wireFields({ connection: "close", transfer_encoding: "chunked", age: 1 }, true), ["Age", "1"]);
  });
});
