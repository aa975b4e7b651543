import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { RunningTimeout } from "#core/util/running_timeout.ts";

/** Holds this thread for so many milliseconds, as a process that is suspended is held. */
const standStill = (milliseconds: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

test("is late after its time, and once", async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  let times = 0;
  const began = performance.now();
  new RunningTimeout(40, () => {
    times += 1;
    resolve(performance.now() - began);
  });
  assert.ok((await promise) >= 39);
  standStill(60);
  await turn();
  assert.equal(times, 1);
});

test("what arrives while the process stands still is taken in before it is late", async () => {
  let late = false;
  const timeout = new RunningTimeout(100, () => {
    late = true;
  });
  for (let round = 0; round < 3; round += 1) {
    standStill(150);
    await turn();
    await turn();
    assert.equal(late, false);
    timeout.refresh();
  }
  timeout.clear();
});

test("is never late once it is cleared, nor when its time is endless", async () => {
  const fail = () => assert.fail("it was late");
  new RunningTimeout(1, fail).clear();
  new RunningTimeout(Number.POSITIVE_INFINITY, fail).refresh();
  standStill(20);
  await turn();
  await turn();
});
