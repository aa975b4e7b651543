import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { headerTable, scanHead } from "#core/http/head.ts";

describe("request header fields", () => {
  test("names are lower case with underscores; repeats are joined, cookies as cookies", () => {
    const table = headerTable([
      "Content-Type",
      "a/b",
      "X-A",
      "1",
      "x-a",
      "2",
      "Cookie",
      "a=1",
      "cookie",
      "b=2",
      ":authority",
      "h",
      ":path",
      "/",
    ]);
    assert.deepEqual({ ...table }, { content_type: "a/b", x_a: "1, 2", cookie: "a=1; b=2", host: "h" });
    assert.equal(Object.getPrototypeOf(table), null);
  });

  test("one pass tells host, length and chunking", () => {
    assert.deepEqual(scanHead(["Host", "a", "HOST", "b", "content-length", "12", "Transfer-Encoding", "chunked"]), {
      authority: "a",
      ambiguousHost: true,
      contentLength: 12,
      chunked: true,
    });
  });

  test("a Host beside :authority is the same one, or the request is ambiguous", () => {
    for (const raw of [
      [":authority", "A", "host", "a"],
      ["host", "a", ":authority", "A"],
    ]) {
      assert.equal(scanHead(raw).ambiguousHost, false);
      assert.equal(scanHead(raw).authority, "A");
      assert.deepEqual({ ...headerTable(raw) }, { host: "A" });
    }
    assert.equal(scanHead([":authority", "a", "host", "b"]).ambiguousHost, true);
    assert.equal(scanHead(["host", "b", ":authority", "a"]).ambiguousHost, true);
  });
});
