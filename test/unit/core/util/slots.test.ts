import assert from "node:assert/strict";
import { test } from "node:test";
import { Slots } from "#core/util/slots.ts";

test("what was added is there until its place is given up, and its place serves again", () => {
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

test("what is given up while all are looked at is met no more", () => {
  const slots = new Slots<{ place: number }>();
  for (let at = 0; at < 3; at += 1) {
    const one = { place: -1 };
    one.place = slots.add(one);
  }
  let met = 0;
  for (const { place } of slots) {
    met += 1;
    if (place === 0) slots.delete(1);
  }
  assert.equal(met, 2);
});

test("places of a burst are given up when all have gone, also while they are looked at", () => {
  const slots = new Slots<{ name: string }>();
  const burst = () => Array.from({ length: 5000 }, (_, at) => slots.add({ name: `${at}` }));
  for (const place of burst()) slots.delete(place);
  assert.deepEqual([slots.size, [...slots]], [0, []]);
  assert.equal(slots.add({ name: "next" }), 0);
  slots.delete(0);
  const places = burst();
  let met = 0;
  for (const _one of slots) {
    met += 1;
    for (const place of places.splice(0)) slots.delete(place);
  }
  assert.deepEqual([met, slots.size], [1, 0]);
  assert.equal(slots.add({ name: "a" }), 0);
  assert.equal(slots.add({ name: "b" }), 1);
  assert.deepEqual(
    [...slots].map(({ name }) => name),
    ["a", "b"],
  );
});
