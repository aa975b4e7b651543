import assert from "node:assert/strict";
import { test } from "node:test";
import { PendingOpens } from "#node/library/pending_opens.ts";
import { eventually } from "#test/support/eventually.ts";

const SOON = { firstMs: 1, laterMs: 1 };
const LONG = { firstMs: 300_000, laterMs: 300_000 };

function thing() {
  const opening = Promise.withResolvers<{ close(): Promise<void> }>();
  const found = {
    opened: 0,
    closed: 0,
    finish: () => opening.resolve({ close: async () => void (found.closed += 1) }),
    fail: (error: Error) => opening.reject(error),
    open: () => {
      found.opened += 1;
      return opening.promise;
    },
  };
  return found;
}

test("a slow open continues, and the next call for it takes it over once", async () => {
  const { open, finish, ...found } = thing();
  const pendingOpens = new PendingOpens();
  assert.equal(await pendingOpens.within({ key: "a", open, ...SOON }), undefined);
  assert.equal(await pendingOpens.within({ key: "a", open, ...SOON }), undefined);
  const taken = pendingOpens.within({ key: "a", open, ...LONG });
  finish();
  assert.notEqual(await taken, undefined);
  assert.equal(found.closed, 0);
  const other = thing();
  other.finish();
  await pendingOpens.within({ key: "a", open: other.open, ...LONG });
  assert.equal(other.opened, 1);
});

test("an open that no caller takes over is closed when it is complete", async () => {
  const made = thing();
  const pendingOpens = new PendingOpens(1);
  assert.equal(await pendingOpens.within({ key: "a", open: made.open, ...SOON }), undefined);
  made.finish();
  await eventually("it is closed", () => made.closed === 1);
});

test("the next call gets the error of a failed open, and the one after it tries again", async () => {
  const { open, fail } = thing();
  const pendingOpens = new PendingOpens();
  assert.equal(await pendingOpens.within({ key: "a", open, ...SOON }), undefined);
  fail(new Error("no such bucket"));
  await assert.rejects(pendingOpens.within({ key: "a", open, ...LONG }), /no such bucket/);
  const other = thing();
  other.finish();
  assert.notEqual(await pendingOpens.within({ key: "a", open: other.open, ...LONG }), undefined);
});
