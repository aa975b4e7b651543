import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Gathering } from "#node/util/async/gathering.ts";

const turns = async (count: number) => {
  for (let left = count; left > 0; left -= 1) await nextTurn();
};

test("it begins once for all who ask in the same turn and in turns one after the other", async (t) => {
  t.mock.method(performance, "now", () => 0);
  let waiting = 0;
  const begun: number[] = [];
  const gathering = new Gathering(() => {
    begun.push(waiting);
    waiting = 0;
  });
  const ask = () => {
    waiting += 1;
    gathering.ask();
  };
  ask();
  ask();
  await nextTurn();
  ask();
  assert.deepEqual(begun, [], "somebody came in the last turn");
  await turns(3);
  assert.deepEqual(begun, [3]);
  ask();
  await turns(3);
  assert.deepEqual(begun, [3, 1]);
});

test("it begins although there is somebody in each turn", async () => {
  let begun = 0;
  const gathering = new Gathering(() => {
    begun += 1;
  });
  while (begun < 2) {
    gathering.ask();
    await nextTurn();
  }
  gathering.stop();
});

test("what was stopped does not begin", async () => {
  const gathering = new Gathering(() => assert.fail("it began"));
  gathering.ask();
  gathering.stop();
  await turns(4);
});
