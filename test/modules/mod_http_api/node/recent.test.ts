import assert from "node:assert/strict";
import { test } from "node:test";
import { Recent } from "../../../../modules/mod_http_api/node/recent.ts";

test("what was set longest ago is forgotten, and told of", () => {
  const told: unknown[] = [];
  const recent = new Recent<string, number>(2, { forgotten: (...entry) => told.push(entry) });
  recent.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  assert.deepEqual(Object.fromEntries(recent), { a: 3, c: 4 });
  assert.deepEqual(told, [["b", 2]]);
  recent.delete("a");
  recent.set("d", 5);
  assert.deepEqual([...recent.keys()], ["c", "d"]);
  assert.equal(told.length, 1);
});

test("what stays is not forgotten however old it is, even beyond the bound", () => {
  const recent = new Recent<string, number>(2, { stays: (key) => key.startsWith("own") });
  recent.set("own 1", 1).set("a", 2).set("b", 3);
  assert.deepEqual([...recent.keys()], ["own 1", "b"]);
  recent.set("own 2", 4).set("own 3", 5);
  assert.deepEqual([...recent.keys()], ["own 1", "own 2", "own 3"]);
});

test("one that holds nothing", () => {
  assert.equal(new Recent<string, number>(0).set("a", 1).size, 0);
});
