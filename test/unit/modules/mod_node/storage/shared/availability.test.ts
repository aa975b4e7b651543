/** What is observed of stores that go and come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Availability } from "#node/storage/shared/availability.ts";
import { failure } from "#node/util/errors.ts";
import { eventually } from "#test/support/eventually.ts";

test("a store that goes while nobody calls is noticed, and so is its return", async (t) => {
  const told: (string | undefined)[] = [];
  const availability = new Availability((problem) => told.push(problem), { probeMs: 1, idleMs: 1 });
  // Timers of what is watched keep no process.
  const waiting = setInterval(() => {}, 1000);
  t.after(() => clearInterval(waiting));
  t.after(() => availability.close());
  let isAway = false;
  const store = {
    async ask() {
      if (isAway) throw failure("STORE_UNAVAILABLE", { reason: "it was switched off" });
    },
  };
  availability.watch("store", store, (target) => target.ask());
  isAway = true;
  await eventually("it is noticed", () => availability.problem !== undefined);
  assert.match(String(availability.problem), /it was switched off/);
  isAway = false;
  await eventually("its return is noticed", () => availability.problem === undefined);
  assert.equal(told.length, 2);
  assert.match(String(told[0]), /it was switched off/);
  assert.equal(told[1], undefined);
});

test("calls tell by their outcome, and other failures say nothing of the store", async (t) => {
  const availability = new Availability(() => {});
  t.after(() => availability.close());
  let fault: Error | undefined = failure("STORE_UNAVAILABLE", { reason: "gone" });
  const store = {
    async ask() {
      if (fault !== undefined) throw fault;
    },
  };
  const watched = availability.watch("store", store, (target) => target.ask());
  await assert.rejects(watched.ask());
  assert.match(String(availability.problem), /gone/);
  fault = new Error("a wrong question");
  await assert.rejects(watched.ask());
  assert.match(String(availability.problem), /gone/);
  fault = undefined;
  await watched.ask();
  assert.equal(availability.problem, undefined);
});
