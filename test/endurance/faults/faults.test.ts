/** The short form of `npm run test:faults`: nobody's requests fail because of another module. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Fault, misbehave } from "./faults.ts";

for (const [fault, isolated] of [
  ["throws", false],
  ["timers", false],
  ["exits", true],
] as const satisfies readonly (readonly [Fault, boolean])[]) {
  test(`a module that ${fault}${isolated ? ", isolated," : ""} takes no answer from another`, {
    timeout: 60_000,
  }, async () => {
    const { answered, failed, statuses } = await misbehave(fault, { isolated, requests: 100, every: 5 });
    assert.deepEqual([answered, failed], [100, 0]);
    assert.ok(statuses.size > 0);
  });
}
