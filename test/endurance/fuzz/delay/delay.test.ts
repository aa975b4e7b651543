import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { steepOf, targets } from "./delay.ts";
import { cpuTime, longestTurn } from "./meter.ts";
import { target } from "./target.ts";

describe("time to read external input is linear in its length, not quadratic", () => {
  for (const each of targets) {
    test(`${each.name}: ${each.shapes.length} shapes`, async () => assert.deepEqual(await steepOf(each), []));
  }
});

test("the meter detects blocking of the loop, and quadratic growth", async () => {
  const busy = (ms: number) => {
    const until = cpuTime() + ms;
    while (cpuTime() < until);
  };
  const longest = await longestTurn(() => busy(30), 1);
  assert.ok(longest >= 30, `${longest}`);
  const pieces = async () => {
    for (let left = 20; left > 0; left -= 1) {
      busy(10);
      await new Promise(setImmediate);
    }
  };
  const inPieces = await longestTurn(pieces, 3, 119);
  assert.ok(inPieces < 120, `${inPieces}`);
  const square = target("square", 1e6, { any: (size) => size }, (size) => busy((size / 20_000) ** 2 * 2));
  assert.equal((await steepOf(square)).length, 1);
});
