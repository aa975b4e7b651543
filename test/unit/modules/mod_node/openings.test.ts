import assert from "node:assert/strict";
import { test } from "node:test";
import { Openings } from "#node/openings.ts";
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

test("what takes long to open goes on, and is taken up by whoever asks again: once", async () => {
  const { open, finish, ...found } = thing();
  const openings = new Openings();
  assert.equal(await openings.within({ key: "a", open, ...SOON }), undefined);
  assert.equal(await openings.within({ key: "a", open, ...SOON }), undefined);
  const taken = openings.within({ key: "a", open, ...LONG });
  finish();
  assert.notEqual(await taken, undefined);
  assert.equal(found.closed, 0);
  const other = thing();
  other.finish();
  await openings.within({ key: "a", open: other.open, ...LONG });
  assert.equal(other.opened, 1);
});

test("what nobody asks for any more is closed when it is open", async () => {
  const made = thing();
  const openings = new Openings(1);
  assert.equal(await openings.within({ key: "a", open: made.open, ...SOON }), undefined);
  made.finish();
  await eventually("it is closed", () => made.closed === 1);
});

test("whoever asks again hears why it does not open, and the next one tries anew", async () => {
  const { open, fail } = thing();
  const openings = new Openings();
  assert.equal(await openings.within({ key: "a", open, ...SOON }), undefined);
  fail(new Error("no such bucket"));
  await assert.rejects(openings.within({ key: "a", open, ...LONG }), /no such bucket/);
  const other = thing();
  other.finish();
  assert.notEqual(await openings.within({ key: "a", open: other.open, ...LONG }), undefined);
});
