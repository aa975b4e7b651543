/** Tests when a flow that stands still is cut. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ProgressWatch } from "#core/http/connection/progress.ts";
import { eventually } from "#test/support/eventually.ts";

const TIMEOUT = 0.4;

/** A flow that stands still, with the time at which it was cut. */
function standing(patience: () => number) {
  const state = { cut: 0 };
  const flow = { moved: () => 0, waiting: () => true, expired: () => void (state.cut = performance.now()), patience };
  return { state, flow };
}

test("a flow that stands still is cut after the timeout", async () => {
  const watch = new ProgressWatch(TIMEOUT, 1);
  const { state, flow } = standing(() => 0);
  const began = performance.now();
  watch.add(flow);
  await eventually("it is cut", () => state.cut > 0);
  assert.ok(state.cut - began >= TIMEOUT * 1000 - 5);
});

test("a flow whose patience ends has the whole timeout from then on", async () => {
  const watch = new ProgressWatch(TIMEOUT, 1);
  let patience = 3_600_000;
  const { state, flow } = standing(() => patience);
  watch.add(flow);
  await sleep(2 * TIMEOUT * 1000);
  assert.equal(state.cut, 0);
  patience = 0;
  const ended = performance.now();
  await eventually("it is cut", () => state.cut > 0);
  assert.ok(state.cut - ended >= TIMEOUT * 1000 - 5, `cut after ${state.cut - ended} ms`);
});

test("a flow that another flow deleted in the same tick is not cut, and later ones are cut in order", async () => {
  const watch = new ProgressWatch(1, 1, 250);
  const expired: string[] = [];
  const holding = (name: string) => ({
    moved: () => 0,
    waiting: () => true,
    buffered: () => 100,
    patience: () => 60_000,
    expired: () => void expired.push(name),
  });
  const a = watch.add(holding("a"));
  watch.add(holding("b"));
  watch.add(holding("c"));
  watch.add({
    moved: () => 0,
    waiting: () => true,
    buffered: () => 100,
    expired: () => {
      expired.push("who deletes");
      watch.delete(a);
      watch.delete(a);
      watch.add(holding("d"));
    },
  });
  await eventually("it is cut", () => expired.length > 0);
  await sleep(10);
  assert.deepEqual(expired, ["who deletes", "b"]);
});

test("a flow that is deleted twice is counted once", async () => {
  const watch = new ProgressWatch(1, 1, 150);
  const flow = { moved: () => 0, waiting: () => false, buffered: () => 100, expired: () => undefined };
  const [first, ...others] = [watch.add(flow), watch.add(flow), watch.add(flow)];
  watch.delete(first);
  watch.delete(first);
  const waiting = watch.room();
  assert.ok(waiting instanceof Promise);
  for (const each of others) watch.delete(each);
  assert.equal(typeof (await waiting), "number");
});
