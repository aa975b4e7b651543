import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../fuzz/random.ts";
import { stalls } from "./stalls.ts";

/** The long form: `npm run test:stalls`. */
test("calls are not cut off if clients and server are suspended longer than all timers", async () => {
  const random = new Random(1);
  const { calls, failures, stops } = await stalls({
    clients: 2,
    rounds: 1,
    lasts: 60,
    files: 300,
    timers: 0.4,
    longest: 1,
    burners: 0,
    random: () => random.next(),
  });
  assert.deepEqual(failures, []);
  assert.equal(calls, 4);
  assert.ok(stops > 0);
});
