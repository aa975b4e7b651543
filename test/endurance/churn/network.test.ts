import assert from "node:assert/strict";
import { test } from "node:test";
import { churnNetwork } from "./network/churn.ts";

test("peers that connect, work with a node and disconnect leave nothing behind and lose nothing, even if one is killed", async () => {
  const report = await churnNetwork({ peers: 1, looks: 1, more: (rounds) => rounds < 2 });
  assert.deepEqual(report.wrong, []);
  assert.deepEqual(
    report.looks.map(({ left }) => left),
    [[], []],
  );
  assert.ok(report.checks > 60, `${report.checks} results`);
  assert.equal(report.stored, 12);
});
