import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { RunningTimeout } from "#core/util/running_timeout.ts";

/** Blocks this thread for this many milliseconds, like a suspended process. */
const standStill = (milliseconds: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

test("a running timeout fires once, after its time", async () => {
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

test("data that arrives while the process is suspended is processed before a running timeout fires", async () => {
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

test("a running timeout never fires once it is cleared, or if its time is infinite", async () => {
  const fail = () => assert.fail("it was late");
  new RunningTimeout(1, fail).clear();
  new RunningTimeout(Number.POSITIVE_INFINITY, fail).refresh();
  standStill(20);
  await turn();
  await turn();
});
