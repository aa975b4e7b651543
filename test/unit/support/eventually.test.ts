import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "#test/support/eventually.ts";

test("a condition that becomes true is awaited, and the error names one that does not", async () => {
  let looks = 0;
  await eventually("the third look", () => (looks += 1) === 3, { every: 1 });
  assert.equal(looks, 3);
  const error = { message: "Gave up after 0.02 s of waiting for this: the moon is full" };
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
