import assert from "node:assert/strict";
import { test } from "node:test";
import { History } from "#node/storage/shared/sql/history.ts";

test("a commit with another id is noticed, even by a read that began before the id was known", () => {
  const history = new History();
  history.note(2, "a");
  history.note(3, "b");
  assert.equal(history.at(3), "b");
  assert.deepEqual([history.contradicts(3, "c"), history.contradicts(3, "b")], [true, false]);
  assert.equal(history.contradicts(2, "x"), false, "earlier ids were forgotten");
  assert.equal(history.contradicts(3, null), false, "the log no longer has the commit");
  history.clear();
  assert.equal(history.contradicts(3, "c"), false);
});
