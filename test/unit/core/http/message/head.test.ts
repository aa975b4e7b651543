import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readHandshake } from "#core/http/connection/upgrade.ts";
import { precondition } from "#core/http/files/conditions.ts";
import { headerTable, scanHead } from "#core/http/message/head.ts";
import { headerOf } from "#core/util/header_fields.ts";
import { sentHeaders } from "#test/support/sent_headers.ts";

describe("request header fields", () => {
  test("names are lower case with underscores; repeated lines are joined, cookies with semicolons", () => {
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

  test("a header is read by its exact name, in any case; repeated lines are joined, cookies with semicolons", () => {
    const raw = [
      "Content_Length",
      "9",
      "content-length",
      "5",
      "X-A",
      "1",
      "x_a",
      "2",
      "x-a",
      "3",
      "Cookie",
      "a=1",
      "cookie",
      "b",
    ];
    assert.equal(headerOf(raw, "content-length"), "5");
    assert.equal(headerOf(raw, "content_length"), "9");
    assert.equal(headerOf(raw, "x-a"), "1, 3");
    assert.equal(headerOf(raw, "cookie"), "a=1; b");
    assert.equal(headerOf(raw, "x-b"), undefined);
    assert.equal(headerOf([], "toString"), undefined);
    assert.equal(headerOf(["X-Empty", ""], "x-empty"), "");
  });

  test("the host comes from :authority if that exists", () => {
    assert.equal(headerOf(["host", "b", ":authority", "a"], "host"), "a");
    assert.equal(headerOf([":authority", "a", "host", "b"], "host"), "a");
    assert.equal(headerOf(["Host", "b"], "host"), "b");
  });

  test("one pass finds host, length and chunking", () => {
    assert.deepEqual(scanHead(["Host", "a", "HOST", "b", "content-length", "12", "Transfer-Encoding", "chunked"]), {
      authority: "a",
      ambiguousHost: true,
      contentLength: 12,
      chunked: true,
      coded: false,
      size: 178,
    });
  });

  test("a Host that differs from :authority makes the request ambiguous", () => {
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

test("a request evaluates its headers by their exact names", () => {
  const state = { etag: '"a"', modified: 0 };
  assert.equal(precondition(sentHeaders({ "If-None-Match": '"a"' }), state), 304);
  assert.equal(precondition(sentHeaders({ If_None_Match: '"a"' }), state), undefined);
  assert.equal(precondition(sentHeaders({ If_Match: '"b"' }), state), undefined);
  const handshake = { "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==" };
  assert.deepEqual(readHandshake(sentHeaders(handshake)), []);
  assert.deepEqual(
    readHandshake(sentHeaders({ ...handshake, Sec_WebSocket_Protocol: "chat", Sec_WebSocket_Key: "" })),
    [],
  );
});
