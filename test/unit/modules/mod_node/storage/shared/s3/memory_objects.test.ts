import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryObjects, unavailable } from "#test/support/engines/memory_objects.ts";
import { storeContract } from "./contract.ts";

storeContract("in memory", async () => new MemoryObjects());

const one = Uint8Array.of(1);

test("stores in memory share their contents, and have separate faults", async () => {
  const first = new MemoryObjects();
  const other = new MemoryObjects(first.contents);
  first.faults = {
    before: (kind) => {
      if (kind === "get") throw unavailable();
    },
    after: (kind) => {
      if (kind === "put") throw unavailable("the response was lost");
    },
  };
  await assert.rejects(first.putNew("a", one), { code: "STORE_UNAVAILABLE", message: /the response was lost/ });
  assert.equal(await other.putNew("a", one), "same");
  await assert.rejects(first.read("a", { start: 0, length: 1 }), { code: "STORE_UNAVAILABLE" });
  assert.deepEqual(await other.read("a", { start: 0, length: 1 }), one);
  assert.deepEqual([first.metrics.get.errors, other.metrics.get.errors], [1, 0]);
});

test("a signal ends a call to which the store in memory does not respond, and so does closing the store", async () => {
  const store = new MemoryObjects(new Map(), { before: () => new Promise(() => {}) });
  const over = new AbortController();
  const ended = assert.rejects(store.head("a", { signal: over.signal }), /enough/);
  const closed = assert.rejects(store.head("a"), { code: "STORE_CLOSED" });
  over.abort(new Error("enough"));
  await ended;
  await store.close();
  await closed;
});
