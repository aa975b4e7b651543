import assert from "node:assert/strict";
import { test } from "node:test";
import { disagreements, readStatements, readTitles } from "./statements.ts";

test("each statement of the contract has a test, and each test has a statement", async () => {
  const [statements, titles] = await Promise.all([readStatements(), readTitles()]);
  assert.ok(statements.length >= 100, `${statements.length} statements`);
  assert.deepEqual(disagreements(statements, titles), []);
});

test("a difference between the statements and the tests is reported", () => {
  const statement = { id: "C1.1", text: "A statement." };
  const title = { id: "C1.1", title: "holds", file: "x.test.ts" };
  assert.deepEqual(disagreements([statement], [title]), []);
  assert.match(disagreements([statement], []).join(), /C1\.1 is stated, but no test/);
  assert.match(disagreements([], [title]).join(), /C1\.1 is tested in x\.test\.ts, but not stated/);
  assert.match(disagreements([statement, statement], [title]).join(), /stated twice/);
  assert.match(disagreements([statement], [title, title]).join(), /two tests/);
  assert.match(disagreements([{ ...statement, text: "" }], [title]).join(), /lacks its statement/);
});
