import assert from "node:assert/strict";
import { test } from "node:test";
import { bracketed, hostPort, unbracketed } from "#core/util/brackets.ts";

test("addresses of IPv6 alone get brackets", () => {
  assert.equal(bracketed("::"), "[::]");
  assert.equal(bracketed("10.0.0.5"), "10.0.0.5");
  assert.equal(hostPort("::1", 80), "[::1]:80");
  assert.equal(hostPort("[::1]", 80), "[::1]:80");
  assert.equal(hostPort("api.example.org", 443), "api.example.org:443");
});

test("brackets are removed from addresses that have them", () => {
  assert.equal(unbracketed("[::1]"), "::1");
  assert.equal(unbracketed("::1"), "::1");
});
