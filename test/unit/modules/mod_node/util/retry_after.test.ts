import assert from "node:assert/strict";
import { test } from "node:test";
import { retryAfter } from "#node/util/retry_after.ts";

test("Retry-After is seconds or a date", () => {
  assert.equal(retryAfter("3"), 3000);
  assert.equal(retryAfter(["5", "9"]), 5000);
  assert.equal(retryAfter("soon"), undefined);
  assert.equal(retryAfter(undefined), undefined);
  assert.equal(retryAfter(new Date(0).toUTCString()), 0);
});
