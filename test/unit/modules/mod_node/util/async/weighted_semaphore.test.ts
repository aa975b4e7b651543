import assert from "node:assert/strict";
import { test } from "node:test";
import { Budget } from "#node/util/async/weighted_semaphore.ts";

test("a budget is given in the order of asking, and what does not fit at all is granted alone", async () => {
  const budget = new Budget(10);
  const entered: string[] = [];
  assert.equal(budget.take(6), undefined);
  const line = [
    ["large", 20],
    ["small", 1],
  ] as const;
  const waiting = line.map(([name, bytes]) => budget.take(bytes)?.then(() => entered.push(name)));
  await Promise.resolve();
  assert.deepEqual(entered, []);
  budget.give(6);
  await waiting[0];
  assert.deepEqual(entered, ["large"]);
  budget.give(20);
  await waiting[1];
  assert.deepEqual(entered, ["large", "small"]);
});

test("a budget tells whether much of it is left, and whether somebody waits", async () => {
  const budget = new Budget(10);
  budget.take(5);
  assert.deepEqual([budget.isAmple, budget.isShort], [true, false]);
  budget.take(1);
  const waiting = budget.take(5);
  assert.deepEqual([budget.isAmple, budget.isShort], [false, true]);
  budget.give(6);
  await waiting;
  assert.deepEqual([budget.isAmple, budget.isShort], [true, false]);
});
