import assert from "node:assert/strict";
import { test } from "node:test";
import { LRU } from "#node/util/lru.ts";

const keys = (recent: LRU<string, number>) => [...recent].map(([key]) => key);

function filled(most: number, values: Readonly<Record<string, number>>, stays?: (key: string) => boolean) {
  const told: unknown[] = [];
  const recent = new LRU<string, number>(most, {
    onEvict: (...entry) => told.push(entry),
    ...(stays && { isExempt: stays }),
  });
  for (const [key, value] of Object.entries(values)) recent.set(key, value);
  return { recent, told };
}

test("what was set longest ago is forgotten, and told of", () => {
  const { recent, told } = filled(2, { a: 1, b: 2, c: 3 });
  assert.deepEqual(
    [...recent],
    [
      ["b", 2],
      ["c", 3],
    ],
  );
  assert.deepEqual(told, [["a", 1]]);
  assert.equal(recent.size, 2);
});

test("to look is not to use: what was used longest ago is forgotten", () => {
  const { recent, told } = filled(2, { a: 1, b: 2 });
  assert.equal(recent.peek("a"), 1);
  recent.set("c", 3);
  assert.deepEqual(keys(recent), ["b", "c"]);
  assert.equal(recent.get("b"), 2);
  recent.set("d", 4);
  assert.deepEqual(keys(recent), ["b", "d"]);
  assert.deepEqual(told, [
    ["a", 1],
    ["c", 3],
  ]);
  assert.deepEqual([recent.peek("a"), recent.get("a")], [undefined, undefined]);
  assert.deepEqual(keys(recent), ["b", "d"]);
});

test("a value in whose place another one comes is told of; the same one again, and what is taken out, are not", () => {
  const { recent, told } = filled(2, { a: 1, b: 2 });
  recent.set("a", 1);
  assert.deepEqual([keys(recent), told], [["b", "a"], []]);
  recent.set("a", 3);
  assert.deepEqual(told, [["a", 1]]);
  assert.deepEqual([recent.delete("a"), recent.delete("a")], [true, false]);
  assert.deepEqual([keys(recent), told.length], [["b"], 1]);
});

test("what stays is not forgotten however old it is, even beyond the bound", () => {
  const { recent } = filled(2, { "own 1": 1, a: 2, b: 3 }, (key) => key.startsWith("own"));
  assert.deepEqual(keys(recent), ["own 1", "b"]);
  recent.set("own 2", 4);
  recent.set("own 3", 5);
  assert.deepEqual(keys(recent), ["own 1", "own 2", "own 3"]);
});

test("one that holds nothing", () => {
  const { recent, told } = filled(0, { a: 1 });
  assert.deepEqual([recent.size, told], [0, [["a", 1]]]);
});
