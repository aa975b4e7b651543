import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyedMutex } from "#node/util/async/keyed_mutex.ts";

test("work under one name runs one at a time, also after a failure, and work under other names runs concurrently", async () => {
  const turns = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const done: string[] = [];
  const note = (word: string, before?: Promise<void>) => async () => {
    await before;
    done.push(word);
    if (word === "bad") throw new Error("broken");
    return word;
  };
  const all = [
    turns.runExclusive("a", note("first", gate.promise)),
    turns.runExclusive("a", note("bad")),
    turns.runExclusive("a", note("last")),
    turns.runExclusive("b", note("other")),
  ];
  assert.equal(await all[3], "other");
  gate.resolve();
  const ends = await Promise.allSettled(all);
  assert.deepEqual(done, ["other", "first", "bad", "last"]);
  assert.deepEqual(
    ends.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled", "fulfilled"],
  );
});

test("an aborted waiter leaves the queue, and those behind it get the mutex", async () => {
  const turns = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const leave = new AbortController();
  const first = turns.runExclusive("a", () => gate.promise);
  const left = turns.runExclusive("a", async () => assert.fail("the aborted work ran"), leave.signal);
  const behind = turns.runExclusive("a", async () => "behind");
  leave.abort(new Error("aborted"));
  await assert.rejects(left, { message: "aborted" });
  gate.resolve();
  await first;
  assert.equal(await behind, "behind");
});
