import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { TimeSlices } from "#node/util/async/steps.ts";

/** Works without waiting for anything, until its time slice has ended `count` times. */
async function work(name: string, count: number, seen: string[]): Promise<void> {
  const slices = new TimeSlices();
  for (let left = count; left > 0; ) {
    const turn = slices.due();
    if (turn === undefined) continue;
    await turn;
    seen.push(name);
    left -= 1;
  }
}

test("each turn of the event loop resumes one of the paused computations, in their order", async () => {
  const seen: string[] = [];
  const names = ["a", "b", "c"];
  let isOver = false;
  const perTurn: number[] = [];
  const watching = (async () => {
    for (let before = 0; !isOver; before = seen.length) {
      await nextTurn();
      perTurn.push(seen.length - before);
    }
  })();
  await Promise.all(names.map((name) => work(name, 3, seen)));
  isOver = true;
  await watching;
  assert.equal(seen.join(""), "abcabcabc");
  assert.equal(Math.max(...perTurn), 1);
});
