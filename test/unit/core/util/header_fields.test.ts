import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { headerTable, scanHead } from "#core/http/head.ts";
import { badHost, hostName, unknownHost, VirtualHosts } from "#core/http/hosts.ts";
import type { ResponseHeaders } from "#core/types.ts";
import { wireFields, wireName } from "#core/util/header_fields.ts";

describe("response header fields", () => {
  test("underscores become dashes and each word begins with a capital", () => {
    assert.equal(wireName("content_type"), "Content-Type");
    assert.equal(wireName("www_authenticate"), "Www-Authenticate");
    assert.equal(wireName("x_MiXeD"), "X-MiXeD");
    assert.equal(wireName("etag"), "Etag");
  });

  test("a list is one line for each value, and what is undefined is left out", () => {
    assert.deepEqual(wireFields({ set_cookie: ["a=1", "b=2"], age: 5, vary: undefined }, false), [
      "Set-Cookie",
      "a=1",
      "Set-Cookie",
      "b=2",
      "Age",
      "5",
    ]);
  });

  test("line breaks, control characters and values of other types are refused", () => {
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

  test("what belongs to an HTTP/1 connection is not sent over HTTP/2", () => {
    assert.deepEqual(wireFields({ connection: "close", transfer_encoding: "chunked", age: 1 }, true), ["Age", "1"]);
  });
});

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
});

describe("virtual hosts", () => {
  test("ports, case and a final dot do not matter", () => {
    for (const text of ["A.Example", "a.example:80", "a.example.", "a.example:"])
      assert.equal(hostName(text), "a.example", text);
    assert.equal(hostName("[::1]:5280"), "[::1]");
    for (const text of ["", "a b", "a/b", "a:b", "a@b", "[::1"]) assert.equal(hostName(text), undefined, text);
  });

  test("without names any host is served; with names an unknown one is not, unless a default is set", () => {
    assert.equal(new VirtualHosts([], undefined).choose("whatever"), "*");
    assert.equal(new VirtualHosts(["A.example"], undefined).choose("a.example:1"), "a.example");
    assert.equal(new VirtualHosts(["a.example"], undefined).choose("b.example"), unknownHost);
    assert.equal(new VirtualHosts([], undefined).choose("a b"), badHost);
    assert.equal(new VirtualHosts(["a.example"], "a.example").choose("b.example"), "a.example");
  });
});
