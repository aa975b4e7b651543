import assert from "node:assert/strict";
import { test } from "node:test";
import { WeightedSemaphore } from "#node/util/async/weighted_semaphore.ts";

test("requests are granted in their order, and one that exceeds the capacity is granted alone", async () => {
  const budget = new WeightedSemaphore(10);
  const entered: string[] = [];
  assert.equal(budget.acquire(6), undefined);
  const line = [
    ["large", 20],
    ["small", 1],
  ] as const;
  const waiting = line.map(([name, bytes]) => budget.acquire(bytes)?.then(() => entered.push(name)));
  await Promise.resolve();
  assert.deepEqual(entered, []);
  budget.release(6);
  await waiting[0];
  assert.deepEqual(entered, ["large"]);
  budget.release(20);
  await waiting[1];
  assert.deepEqual(entered, ["large", "small"]);
});

test("a semaphore shows whether half of it is free and whether somebody waits", async () => {
  const budget = new WeightedSemaphore(10);
  budget.acquire(5);
  assert.deepEqual([budget.isHalfFree, budget.hasWaiters], [true, false]);
  budget.acquire(1);
  const waiting = budget.acquire(5);
  assert.deepEqual([budget.isHalfFree, budget.hasWaiters], [false, true]);
  budget.release(6);
  await waiting;
  assert.deepEqual([budget.isHalfFree, budget.hasWaiters], [true, false]);
});
