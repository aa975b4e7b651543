import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRouterUrl } from "#node/network/routing/http/endpoint.ts";

test("an unescaped password in the URL of a router is used as it is written", () => {
  const credentials = (url: string) => {
    const [, text = ""] = parseRouterUrl(url).authorization?.split(" ") ?? [];
    return Buffer.from(text, "base64").toString();
  };
  assert.equal(credentials("https://a%40b:c%25d@router.example"), "a@b:c%d");
  assert.equal(credentials("https://me:100%@router.example"), "me:100%");
  assert.equal(credentials("https://router.example"), "");
});
