import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseRouteKeys, patternHint } from "#core/http/routing/keys.ts";

describe("route keys", () => {
  const accepted = {
    GET: { method: "GET", path: "", wildcard: false },
    "GET /": { method: "GET", path: "/", wildcard: false },
    "GET /a/b": { method: "GET", path: "/a/b", wildcard: false },
    "GET /*": { method: "GET", path: "", wildcard: true },
    "GET /a/*": { method: "GET", path: "/a", wildcard: true },
    "get   /lower": { method: "GET", path: "/lower", wildcard: false },
    "GET /a b": { method: "GET", path: "/a b", wildcard: false },
    "GET /mid/*/end": { method: "GET", path: "/mid/*/end", wildcard: false },
    "GET /pre*": { method: "GET", path: "/pre*", wildcard: false },
    "PROPFIND /x": { method: "PROPFIND", path: "/x", wildcard: false },
  };
  for (const [key, parsed] of Object.entries(accepted)) {
    test(`${key} is accepted`, () => assert.deepEqual(parseRouteKeys([key], "app"), [parsed]));
  }

  const refused = {
    "/x": /lacks a method/,
    "": /lacks a method/,
    "* /x": /method \*/,
    "BREW /pot": /method BREW/,
    "connect /x": /CONNECT, which is for proxies/,
    "GET norel": /"GET \/norel"/,
  };
  for (const [key, message] of Object.entries(refused)) {
    test(`"${key}" is refused, naming app and key`, () => {
      assert.throws(
        () => parseRouteKeys([key], "pots"),
        (error: Error) => {
          assert.match(error.message, message);
          assert.ok(error.message.includes("pots") && error.message.includes(JSON.stringify(key)));
          return true;
        },
      );
    });
  }

  const literal = {
    "GET /a/:id": "GET /a/*",
    "GET /:id/x": "GET /*",
    "PUT /*/x": "PUT /*",
    "GET /a*": "GET /a/*",
    "GET /a/b*c/*": "GET /a/*",
  };
  for (const [key, instead] of Object.entries(literal)) {
    test(`${key} gets a hint that it is not a pattern`, () => {
      assert.ok(patternHint(key)?.endsWith(`write ${JSON.stringify(instead)}`), patternHint(key));
    });
  }

  test("literal keys get no hint", () => {
    for (const key of ["GET", "GET /", "GET /a:b", "GET /a/*", "GET /*", "nonsense"])
      assert.equal(patternHint(key), undefined, key);
  });
});
