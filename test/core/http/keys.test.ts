import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseRouteKey } from "../../../core/http/keys.ts";

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
    test(`${key} is understood`, () => assert.deepEqual(parseRouteKey(key, "app"), parsed));
  }

  const refused = {
    "/x": /lacks a method/,
    "": /lacks a method/,
    "* /x": /method \*/,
    "BREW /pot": /method BREW/,
    "GET norel": /"GET \/norel"/,
  };
  for (const [key, message] of Object.entries(refused)) {
    test(`"${key}" is refused, naming app and key`, () => {
      assert.throws(
        () => parseRouteKey(key, "pots"),
        (error: Error) => {
          assert.match(error.message, message);
          assert.ok(error.message.includes("pots") && error.message.includes(JSON.stringify(key)));
          return true;
        },
      );
    });
  }
});
