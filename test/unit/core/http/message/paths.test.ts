import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decodePath, encodePath, parseTarget, withoutDots } from "#core/http/message/paths.ts";

describe("request targets", () => {
  test("the first question mark ends the path", () => {
    assert.deepEqual(parseTarget("/a?b?c=1"), {
      rawPath: "/a",
      query: "b?c=1",
      scheme: undefined,
      authority: undefined,
    });
  });

  test("an empty query is none", () => {
    assert.equal(parseTarget("/a?")?.query, undefined);
  });

  test("an absolute target names scheme and host", () => {
    assert.deepEqual(parseTarget("http://a.example:81/x?y"), {
      rawPath: "/x",
      query: "y",
      scheme: "http",
      authority: "a.example:81",
    });
    assert.equal(parseTarget("http://a.example")?.rawPath, "/");
  });

  test("any other target is invalid", () => {
    for (const target of ["*", "a.example:443", "", "ftp://a/b", "x/y"])
      assert.equal(parseTarget(target), undefined, target);
  });
});

describe("paths", () => {
  test("escapes are decoded, and invalid ones stay unchanged", () => {
    assert.equal(decodePath("/a%20b%2Fc"), "/a b/c");
    assert.equal(decodePath("/%zz/%/%4"), "/%zz/%/%4");
    assert.equal(decodePath("/%C3%A4/%ff"), "/ä/%ff");
    assert.equal(decodePath("/%2520"), "/%20");
  });

  test("runs of slashes become one, also those that were escaped", () => {
    assert.equal(decodePath("//a///b/%2F/c"), "/a/b/c");
  });

  test("dot segments stay, unless they climb above the root", () => {
    assert.equal(decodePath("/a/../b"), "/a/../b");
    for (const path of ["/../x", "/a/../../x", "/%2e%2e/x", "/a/%2e%2e/.%2e/x", "/.."])
      assert.equal(decodePath(path), undefined, path);
    assert.equal(decodePath("/..x/y.."), "/..x/y..");
  });

  test("a path written into a Location is escaped segment by segment", () => {
    assert.equal(encodePath("/a b/ä?#"), "/a%20b/%C3%A4%3F%23");
  });
});

test("dot segments can be resolved, and names that begin with dots are none", () => {
  for (const [path, resolved] of [
    ["/./a/x", "/a/x"],
    ["/b/../a/.", "/a"],
    ["/a/x/..", "/a"],
    ["/..", "/"],
    ["/.a/..b/...", "/.a/..b/..."],
    ["/a/", "/a/"],
  ]) {
    assert.equal(withoutDots(path as string), resolved);
  }
});
