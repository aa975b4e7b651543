import assert from "node:assert/strict";
import { test } from "node:test";
import { Items } from "#core/module/items.ts";
import type { OwnedItem } from "#core/types.ts";

const item = (name: string): OwnedItem => ({ item: { name }, owner: {} as OwnedItem["owner"] });
const nameOf = (owned: OwnedItem) => (owned.item as { name: string }).name;

function receiver(seen: string[], options: { refuse?: string; removed?: () => unknown } = {}) {
  const faults: unknown[] = [];
  return {
    faults,
    added: (owned: OwnedItem) => {
      if (nameOf(owned) === options.refuse) throw new Error(`${options.refuse} refused`);
      seen.push(`+${nameOf(owned)}`);
    },
    removed: (owned: OwnedItem) => {
      seen.push(`-${nameOf(owned)}`);
      return options.removed?.();
    },
    fault: (error: unknown) => void faults.push(error),
  };
}

test("a receiver gets the existing items, and then each one that is added or removed", () => {
  const items = new Items();
  const seen: string[] = [];
  items.add("kind", item("a"));
  items.handle("kind", receiver(seen));
  const remove = items.add("kind", item("b"));
  items.add("other", item("c"));
  assert.equal(remove(), undefined);
  assert.deepEqual(seen, ["+a", "+b", "-b"]);
});

test("removing an item returns a promise for receivers that need time", async () => {
  const items = new Items();
  const gate = Promise.withResolvers<void>();
  items.handle("kind", receiver([], { removed: () => gate.promise }));
  const left = items.add("kind", item("a"))();
  assert.ok(left instanceof Promise);
  gate.resolve();
  await left;
});

test("an item that one receiver refuses is removed from the others", () => {
  const items = new Items();
  const seen: string[] = [];
  items.handle("kind", receiver(seen));
  items.handle("kind", receiver([], { refuse: "a" }));
  assert.throws(() => items.add("kind", item("a")), /a refused/);
  assert.deepEqual(seen, ["+a", "-a"]);
  const later: string[] = [];
  items.handle("kind", receiver(later));
  assert.deepEqual(later, []);
});

test("a receiver that refuses an existing item gets the others, and is not notified of its removal", () => {
  const items = new Items();
  const seen: string[] = [];
  const removeA = items.add("kind", item("a"));
  items.add("kind", item("b"));
  const picky = receiver(seen, { refuse: "a" });
  items.handle("kind", picky);
  removeA();
  assert.deepEqual(seen, ["+b"]);
  assert.equal(picky.faults.length, 1);
});

test("a receiver that throws at a removal does not stop the others", () => {
  const items = new Items();
  const seen: string[] = [];
  const failing = receiver([], {
    removed: () => {
      throw new Error("no");
    },
  });
  items.handle("kind", failing);
  items.handle("kind", receiver(seen));
  items.add("kind", item("a"))();
  assert.deepEqual(seen, ["+a", "-a"]);
  assert.equal(failing.faults.length, 1);
});

test("a receiver that has ended gets no items", () => {
  const items = new Items();
  const seen: string[] = [];
  const end = items.handle("kind", receiver(seen));
  const remove = items.add("kind", item("a"));
  end();
  remove();
  items.add("kind", item("b"));
  assert.deepEqual(seen, ["+a"]);
});
