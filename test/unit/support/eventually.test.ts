import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "#test/support/eventually.ts";

test("what comes is waited for, and what does not is named", async () => {
  let looks = 0;
  await eventually("the third look", () => (looks += 1) === 3, { every: 1 });
  assert.equal(looks, 3);
  const error = { message: "This did not come within 0.02 s: the moon is full" };
  await assert.rejects(
    eventually("the moon is full", () => false, { every: 1, within: 20 }),
    error,
  );
  await assert.rejects(
    eventually("the moon is full", () => new Promise(() => undefined), { within: 20 }),
    error,
  );
  await assert.rejects(
    eventually("a look that fails", () => Promise.reject(new Error("it is dark"))),
    /it is dark/,
  );
});
