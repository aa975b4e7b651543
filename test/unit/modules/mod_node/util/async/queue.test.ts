import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Queue } from "#node/util/async/queue.ts";

test("values are read in order, whether they were pushed before or after the reader came", async () => {
  const queue = new Queue<number>();
  queue.push(1);
  queue.push(2);
  const read = Array.fromAsync(queue);
  await nextTurn();
  queue.push(3);
  await nextTurn();
  queue.push(4);
  queue.end();
  queue.push(5);
  assert.deepEqual(await read, [1, 2, 3, 4]);
});

test("a failure is thrown after the values that were pushed before it", async () => {
  const queue = new Queue<string>();
  queue.push("one");
  queue.fail(new Error("over"));
  const iterator = queue[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).value, "one");
  await assert.rejects(iterator.next(), { message: "over" });
});

test("the oldest value can be dropped, which bounds the queue of a slow reader", () => {
  const queue = new Queue<number>();
  for (let value = 0; value < 1000; value += 1) {
    queue.push(value);
    if (queue.length > 10) queue.dropOldest();
  }
  assert.equal(queue.length, 10);
  while (queue.dropOldest());
  assert.equal(queue.length, 0);
});
