import assert from "node:assert/strict";
import { STATUS_CODES } from "node:http";
import { describe, test } from "node:test";
import { contains_token, normalize_path, status_codes, urldecode, urlencode } from "#core/net/http.ts";

describe("urlencode", () => {
  test("keeps letters, digits and . ~ _ -", () => {
    const unescaped = "ABCXYZabcxyz0189.~_-";
    assert.equal(urlencode(unescaped), unescaped);
  });

  test("escapes everything else in lower-case hex", () => {
    assert.equal(urlencode("a b/c?d=e&f+%"), "a%20b%2fc%3fd%3de%26f%2b%25");
    assert.equal(urlencode("!*'()"), "%21%2a%27%28%29");
  });

  test("escapes UTF-8 bytes, pairs of surrogates as one character", () => {
    assert.equal(urlencode("ü€😀"), "%c3%bc%e2%82%ac%f0%9f%98%80");
  });

  test("leaves the empty text empty", () => assert.equal(urlencode(""), ""));

  test("returns nothing for nothing", () => {
    assert.equal(urlencode(undefined), undefined);
    assert.equal(urlencode(null), undefined);
  });
});

describe("urldecode", () => {
  test("accepts escapes in either case", () => assert.equal(urldecode("%2F%2f%c3%BC"), "//ü"));

  test("keeps a plus, a lone percent and invalid escapes", () => {
    for (const text of ["a+b", "100%", "%", "%zz", "%4", "%%", "%g1%1g"]) assert.equal(urldecode(text), text);
    assert.equal(urldecode("%%41"), "%A");
  });

  test("decodes once", () => assert.equal(urldecode("%2541"), "%41"));

  test("leaves the empty text empty, and returns nothing for nothing", () => {
    assert.equal(urldecode(""), "");
    assert.equal(urldecode(undefined), undefined);
    assert.equal(urldecode(null), undefined);
  });

  test("returns the replacement character for bytes that are not UTF-8", () =>
    assert.equal(urldecode("a%ffb"), "a\ufffdb"));

  test("returns every text that was encoded", () => {
    for (const text of ["", "%", "a+b c", "\0\x01\x7f", "ü€😀", "%41"]) assert.equal(urldecode(urlencode(text)), text);
  });
});

describe("contains_token", () => {
  test("finds a token of a comma-separated list, ignoring case and blanks", () => {
    assert.equal(contains_token("gzip,  Br\t, deflate", "bR"), true);
    assert.equal(contains_token("Keep-Alive", "keep-alive"), true);
    assert.equal(contains_token("a b", "ab"), true);
  });

  test("finds only whole tokens", () => {
    assert.equal(contains_token("gzip;q=0, br", "gzip"), false);
    assert.equal(contains_token("brotli", "br"), false);
    assert.equal(contains_token("a,b", "a,b"), false);
  });

  test("finds the empty token in an empty list", () => {
    assert.equal(contains_token("", ""), true);
    assert.equal(contains_token("", "a"), false);
    assert.equal(contains_token("a", ""), false);
  });

  test("fails for a missing list", () => {
    assert.throws(() => contains_token(undefined as unknown as string, "a"), TypeError);
  });
});

describe("normalize_path", () => {
  test("adds a leading slash and removes one trailing slash", () => {
    assert.equal(normalize_path("a/b"), "/a/b");
    assert.equal(normalize_path("/a/b/"), "/a/b");
    assert.equal(normalize_path("/a//"), "/a/");
  });

  test("ends in one slash for a folder", () => {
    assert.equal(normalize_path("a", true), "/a/");
    assert.equal(normalize_path("/a/", true), "/a/");
  });

  test("leaves dots, blanks and escapes unchanged", () => {
    assert.equal(normalize_path("../a b/%2f"), "/../a b/%2f");
  });

  test("returns / for nothing and for /", () => {
    for (const path of ["", "/"]) {
      assert.equal(normalize_path(path), "/");
      assert.equal(normalize_path(path, true), "/");
    }
  });
});

describe("status_codes", () => {
  test("contains the phrase of each registered code", () => {
    assert.equal(status_codes[404], "Not Found");
    assert.equal(status_codes[431], "Request Header Fields Too Large");
    assert.equal(status_codes[599], undefined);
    assert.equal(Object.keys(status_codes).length, Object.keys(STATUS_CODES).length);
  });

  test("cannot be changed by one module for all others", () => {
    assert.throws(() => Object.assign(status_codes, { 404: "Gone fishing" }), TypeError);
  });
});
