/** The timer functions of Node.js while the host watches them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as exported } from "node:timers";
import promises from "node:timers/promises";
import { promisify } from "node:util";
import { isPending, watchTimers } from "#core/util/patches/node/timers.ts";

test("watched timers behave as before, and are reported until they end", async () => {
  const all: { what: string; isRunning: () => boolean }[] = [];
  let isOn = true;
  watchTimers({ isWanted: () => isOn, started: (what, isRunning) => void all.push({ what, isRunning }) });
  const running = () => all.filter(({ isRunning }) => isRunning()).map(({ what }) => what);
  const fired = Promise.withResolvers<unknown>();
  const timeout = exported(fired.resolve, 5, "value");
  const interval = setInterval(() => undefined, 7000);
  const slept = promises.setTimeout(6, "slept");
  assert.deepEqual(running(), ["a timeout of 5 ms", "an interval of 7000 ms", "a timeout of 6 ms"]);
  assert.deepEqual([await fired.promise, await slept], ["value", "slept"]);
  assert.deepEqual([running(), isPending(timeout), timeout.hasRef()], [["an interval of 7000 ms"], false, true]);
  clearInterval(interval);
  for await (const value of promises.setInterval(1, "tick")) {
    assert.deepEqual([value, running()], ["tick", ["an interval of 1 ms"]]);
    break;
  }
  assert.deepEqual([running(), setTimeout.name, setTimeout === exported], [[], "setTimeout", true]);
  assert.equal(await promisify(setTimeout)(1, "promised"), "promised");
  isOn = false;
  const [count] = [all.length];
  clearTimeout(setTimeout(() => undefined, 1));
  assert.equal(all.length, count);
});

test("no timer is reported as running when Node does not show whether it is", () => {
  const timer = setTimeout(() => undefined, 1);
  assert.equal(isPending(timer), true);
  clearTimeout(timer);
  assert.equal(isPending({} as NodeJS.Timeout), false);
});
