import assert from "node:assert/strict";
import { test } from "node:test";
import { LRU } from "#node/util/lru.ts";

const keys = (recent: LRU<string, number>) => [...recent].map(([key]) => key);

function filled(most: number, values: Readonly<Record<string, number>>, stays?: (key: string) => boolean) {
  const evicted: unknown[] = [];
  const recent = new LRU<string, number>(most, {
    onEvict: (...entry) => evicted.push(entry),
    ...(stays && { isExempt: stays }),
  });
  for (const [key, value] of Object.entries(values)) recent.set(key, value);
  return { recent, evicted };
}

test("the oldest entry is evicted and reported", () => {
  const { recent, evicted } = filled(2, { a: 1, b: 2, c: 3 });
  assert.deepEqual(
    [...recent],
    [
      ["b", 2],
      ["c", 3],
    ],
  );
  assert.deepEqual(evicted, [["a", 1]]);
  assert.equal(recent.size, 2);
});

test("peek is no use of an entry, and the least recently used entry is evicted", () => {
  const { recent, evicted } = filled(2, { a: 1, b: 2 });
  assert.equal(recent.peek("a"), 1);
  recent.set("c", 3);
  assert.deepEqual(keys(recent), ["b", "c"]);
  assert.equal(recent.get("b"), 2);
  recent.set("d", 4);
  assert.deepEqual(keys(recent), ["b", "d"]);
  assert.deepEqual(evicted, [
    ["a", 1],
    ["c", 3],
  ]);
  assert.deepEqual([recent.peek("a"), recent.get("a")], [undefined, undefined]);
  assert.deepEqual(keys(recent), ["b", "d"]);
});

test("a replaced value is reported, and a value that is set again or deleted is not", () => {
  const { recent, evicted } = filled(2, { a: 1, b: 2 });
  recent.set("a", 1);
  assert.deepEqual([keys(recent), evicted], [["b", "a"], []]);
  recent.set("a", 3);
  assert.deepEqual(evicted, [["a", 1]]);
  assert.deepEqual([recent.delete("a"), recent.delete("a")], [true, false]);
  assert.deepEqual([keys(recent), evicted.length], [["b"], 1]);
});

test("exempt entries are never evicted, even if they exceed the maximum size", () => {
  const { recent } = filled(2, { "own 1": 1, a: 2, b: 3 }, (key) => key.startsWith("own"));
  assert.deepEqual(keys(recent), ["own 1", "b"]);
  recent.set("own 2", 4);
  recent.set("own 3", 5);
  assert.deepEqual(keys(recent), ["own 1", "own 2", "own 3"]);
});

test("a cache of size 0 evicts each entry at once", () => {
  const { recent, evicted } = filled(0, { a: 1 });
  assert.deepEqual([recent.size, evicted], [0, [["a", 1]]]);
});
