import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { ModuleTimer } from "#core/module/timers.ts";

function timerOf(t: TestContext, delay: number, run: (now: number) => unknown) {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const faults: unknown[] = [];
  let ended = 0;
  const timer = new ModuleTimer(delay, { run, fault: (error) => faults.push(error), ended: () => ended++ });
  return { timer, faults, ended: () => ended };
}

/** Lets the promises of a call settle. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a timer", () => {
  test("does not run before it is started, and then runs once, with the time in seconds", async (t) => {
    const calls: number[] = [];
    const { timer, ended } = timerOf(t, 2, (now) => void calls.push(now));
    t.mock.timers.tick(5000);
    timer.start();
    t.mock.timers.tick(1999);
    assert.deepEqual(calls, []);
    t.mock.timers.tick(1);
    await settled();
    assert.deepEqual(calls, [1007]);
    assert.equal(ended(), 1);
  });

  test("repeats after the number of seconds that its function returns or resolves to", async (t) => {
    const results = [3, Promise.resolve(0.5), undefined];
    let calls = 0;
    const { timer } = timerOf(t, 1, () => results[calls++]);
    timer.start();
    for (const [tick, expected] of [
      [1000, 1],
      [2999, 1],
      [1, 2],
      [500, 3],
      [10_000, 3],
    ] as const) {
      t.mock.timers.tick(tick);
      await settled();
      assert.equal(calls, expected);
    }
  });

  test("reports the error of its function, and ends", async (t) => {
    const { timer, faults, ended } = timerOf(t, 1, () => Promise.reject(new Error("no")));
    timer.start();
    t.mock.timers.tick(1000);
    await settled();
    assert.match(String(faults[0]), /no/);
    assert.equal(ended(), 1);
  });

  test("does not repeat if it is stopped while its function runs", async (t) => {
    let calls = 0;
    const { timer } = timerOf(t, 1, () => {
      calls += 1;
      timer.stop();
      return 1;
    });
    timer.start();
    t.mock.timers.tick(1000);
    await settled();
    t.mock.timers.tick(1000);
    await settled();
    assert.equal(calls, 1);
  });

  test("counts from the moment of reschedule, also from inside its function", async (t) => {
    let calls = 0;
    const { timer } = timerOf(t, 10, () => {
      calls += 1;
      if (calls === 1) timer.reschedule(4);
    });
    timer.start();
    timer.reschedule(2);
    t.mock.timers.tick(2000);
    await settled();
    assert.equal(calls, 1);
    t.mock.timers.tick(4000);
    await settled();
    assert.equal(calls, 2);
  });

  test("can wait longer than the timers of the platform", async (t) => {
    let calls = 0;
    const { timer } = timerOf(t, 40 * 86_400, () => void calls++);
    timer.start();
    t.mock.timers.tick(2 ** 31 - 1);
    t.mock.timers.tick(40 * 86_400_000 - 2 ** 31);
    assert.equal(calls, 0);
    t.mock.timers.tick(1);
    assert.equal(calls, 1);
  });

  test("refuses a delay that is not a number of seconds", (t) => {
    for (const delay of [-1, Number.NaN, Number.POSITIVE_INFINITY, "1" as never]) {
      assert.throws(() => timerOf(t, delay, () => {}), /number of seconds/);
      t.mock.timers.reset();
    }
  });
});
