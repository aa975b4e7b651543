import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Gathering } from "#node/util/async/gathering.ts";

const turns = async (count: number) => {
  for (let left = count; left > 0; left -= 1) await nextTurn();
};

test("requests of the same turn and of consecutive turns share one run", async (t) => {
  t.mock.method(performance, "now", () => 0);
  let waiting = 0;
  const begun: number[] = [];
  const gathering = new Gathering(() => {
    begun.push(waiting);
    waiting = 0;
  });
  const ask = () => {
    waiting += 1;
    gathering.request();
  };
  ask();
  ask();
  await nextTurn();
  ask();
  assert.deepEqual(begun, [], "no run begins, because the last turn had a request");
  await turns(3);
  assert.deepEqual(begun, [3]);
  ask();
  await turns(3);
  assert.deepEqual(begun, [3, 1]);
});

test("a run begins even if every turn has a request", async () => {
  let begun = 0;
  const gathering = new Gathering(() => {
    begun += 1;
  });
  while (begun < 2) {
    gathering.request();
    await nextTurn();
  }
  gathering.stop();
});

test("a stopped run does not begin", async () => {
  const gathering = new Gathering(() => assert.fail("it began"));
  gathering.request();
  gathering.stop();
  await turns(4);
});
