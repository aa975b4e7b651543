import assert from "node:assert/strict";
import { test } from "node:test";
import { merge } from "#node/util/async/merge.ts";

async function* of<T>(...items: T[]) {
  yield* items;
}

test("the values of several streams come as one stream", async () => {
  assert.deepEqual((await Array.fromAsync(merge([of(1, 2), of(3), of<number>()], () => {}))).toSorted(), [1, 2, 3]);
});

test("a consumer that leaves early stops a hanging stream and does not wait for it", async () => {
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

test("the error of one stream is thrown, and the others are stopped", async () => {
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
