import assert from "node:assert/strict";
import { test } from "node:test";
import { Slots } from "#core/util/slots.ts";

test("an added thing stays until its slot is deleted, and the slot is used again", () => {
  const slots = new Slots<{ name: string }>();
  const names = () => [...slots].map(({ name }) => name).sort();
  const [a, b, c] = ["a", "b", "c"].map((name) => slots.add({ name })) as [number, number, number];
  assert.deepEqual([names(), slots.size], [["a", "b", "c"], 3]);
  slots.delete(b);
  assert.deepEqual([names(), slots.size], [["a", "c"], 2]);
  assert.equal(slots.add({ name: "d" }), b);
  slots.delete(a);
  slots.delete(c);
  assert.deepEqual([names(), slots.size], [["d"], 1]);
});

test("a thing that is deleted during an iteration is not visited", () => {
  const slots = new Slots<{ slot: number }>();
  for (let at = 0; at < 3; at += 1) {
    const one = { slot: -1 };
    one.slot = slots.add(one);
  }
  let met = 0;
  for (const { slot } of slots) {
    met += 1;
    if (slot === 0) slots.delete(1);
  }
  assert.equal(met, 2);
});

test("slots of a burst are freed when all things are deleted, also during an iteration", () => {
  const slots = new Slots<{ name: string }>();
  const burst = () => Array.from({ length: 5000 }, (_, at) => slots.add({ name: `${at}` }));
  for (const slot of burst()) slots.delete(slot);
  assert.deepEqual([slots.size, [...slots]], [0, []]);
  assert.equal(slots.add({ name: "next" }), 0);
  slots.delete(0);
  const added = burst();
  let met = 0;
  for (const _one of slots) {
    met += 1;
    for (const slot of added.splice(0)) slots.delete(slot);
  }
  assert.deepEqual([met, slots.size], [1, 0]);
  assert.equal(slots.add({ name: "a" }), 0);
  assert.equal(slots.add({ name: "b" }), 1);
  assert.deepEqual(
    [...slots].map(({ name }) => name),
    ["a", "b"],
  );
});
