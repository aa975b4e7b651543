import assert from "node:assert/strict";
import { test } from "node:test";
import { merge } from "#node/util/async/merge.ts";

async function* of<T>(...items: T[]) {
  yield* items;
}

test("what several streams give comes as one", async () => {
  assert.deepEqual((await Array.fromAsync(merge([of(1, 2), of(3), of<number>()], () => {}))).toSorted(), [1, 2, 3]);
});

test("a stream that hangs is told to stop when no more is wanted, and nobody waits for it", async () => {
  let stopped = 0;
  async function* hanging() {
    yield "first";
    await new Promise(() => {});
  }
  for await (const item of merge([hanging()], () => (stopped += 1))) {
    assert.equal(item, "first");
    break;
  }
  assert.equal(stopped, 1);
});

test("what one throws is thrown, and the others are stopped", async () => {
  let stopped = 0;
  async function* failing() {
    yield 1;
    throw new Error("broken");
  }
  async function* endless() {
    for (;;) yield 2;
  }
  await assert.rejects(async () => {
    for await (const _ of merge([failing(), endless()], () => (stopped += 1)));
  }, /broken/);
  assert.equal(stopped, 1);
});
