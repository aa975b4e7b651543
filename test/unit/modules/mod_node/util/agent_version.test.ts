import assert from "node:assert/strict";
import { test } from "node:test";
import { isAgentVersion, withSuffix } from "#node/util/agent_version.ts";

test("a suffix becomes another segment of the agent version, without blanks and cut to the maximum length", () => {
  assert.equal(withSuffix("modhost/0.1.0/", "mine"), "modhost/0.1.0/mine");
  assert.equal(withSuffix("kubo/0.43.0", "a b\u00e9"), "kubo/0.43.0/a_b_");
  for (const none of ["", null, undefined]) assert.equal(withSuffix("kubo/0.43.0", none), "kubo/0.43.0");
  const long = withSuffix("kubo/0.43.0", "x".repeat(200));
  assert.equal(long.length, 128);
  assert.ok(isAgentVersion(long));
});
