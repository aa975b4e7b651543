import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedLock } from "#node/util/async/shared_lock.ts";

/** Whether a promise has come to its end by now. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol("open");
  await new Promise(setImmediate);
  return (await Promise.race([promise, open])) !== open;
}

test("many share it, one excludes all", async () => {
  const lock = new SharedLock();
  const one = await lock.acquireShared();
  const two = await lock.acquireShared();
  const exclusive = lock.acquireExclusive();
  assert.ok(lock.contended);
  one();
  assert.equal(await settled(exclusive), false);
  two();
  const release = await exclusive;
  const later = lock.acquireShared();
  assert.equal(await settled(later), false);
  release();
  (await later)();
});

test("who comes after one that waits to exclude, waits behind it", async () => {
  const lock = new SharedLock();
  const first = await lock.acquireShared();
  const exclusive = lock.acquireExclusive();
  const late = lock.acquireShared();
  assert.equal(await settled(late), false);
  first();
  (await exclusive)();
  (await late)();
  assert.equal(lock.contended, false);
});

test("releasing twice releases once", async () => {
  const lock = new SharedLock();
  const one = await lock.acquireShared();
  const two = await lock.acquireShared();
  one();
  one();
  const exclusive = lock.acquireExclusive();
  assert.equal(await settled(exclusive), false);
  two();
  (await exclusive)();
});

test("who is called off leaves the queue, and those behind go on", async () => {
  const lock = new SharedLock();
  const held = await lock.acquireShared();
  const controller = new AbortController();
  const exclusive = lock.acquireExclusive(controller.signal);
  const behind = lock.acquireShared();
  controller.abort(new Error("called off"));
  await assert.rejects(exclusive, /called off/);
  (await behind)();
  held();
  (await lock.acquireExclusive())();
});

test("whoever has asked to hears of each who has to wait for having it exclusively", async () => {
  const lock = new SharedLock();
  let heard = 0;
  const end = lock.onExclusiveWaiting(() => {
    heard += 1;
  });
  (await lock.acquireExclusive())();
  assert.equal(heard, 0, "nobody had to wait");
  const release = await lock.acquireShared();
  const waiting = lock.acquireExclusive();
  assert.equal(heard, 1);
  lock.acquireShared().then((shared) => shared());
  assert.equal(heard, 1);
  end();
  const other = lock.acquireExclusive();
  assert.equal(heard, 1);
  release();
  (await waiting)();
  (await other)();
});
