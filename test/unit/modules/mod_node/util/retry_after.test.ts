import assert from "node:assert/strict";
import { test } from "node:test";
import { retryAfterMs } from "#node/util/retry_after.ts";

test("Retry-After is seconds or a date", () => {
  assert.equal(retryAfterMs("3"), 3000);
  assert.equal(retryAfterMs(["5", "9"]), 5000);
  assert.equal(retryAfterMs("soon"), undefined);
  assert.equal(retryAfterMs(undefined), undefined);
  assert.equal(retryAfterMs(new Date(0).toUTCString()), 0);
});
