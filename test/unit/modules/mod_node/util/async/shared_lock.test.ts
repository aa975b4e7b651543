import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedLock } from "#node/util/async/shared_lock.ts";

/** Whether a promise has settled by the next turn of the event loop. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol("open");
  await new Promise(setImmediate);
  return (await Promise.race([promise, open])) !== open;
}

test("many holders share the lock, and an exclusive holder excludes all", async () => {
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

test("a request that comes after a waiting exclusive one waits behind it", async () => {
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

test("an aborted waiter leaves the queue, and those behind it get the lock", async () => {
  const lock = new SharedLock();
  const releaseFirst = await lock.acquireShared();
  const controller = new AbortController();
  const exclusive = lock.acquireExclusive(controller.signal);
  const behind = lock.acquireShared();
  controller.abort(new Error("aborted"));
  await assert.rejects(exclusive, /aborted/);
  (await behind)();
  releaseFirst();
  (await lock.acquireExclusive())();
});

test("a listener is called for each exclusive request that has to wait, until it unsubscribes", async () => {
  const lock = new SharedLock();
  let heard = 0;
  const end = lock.onExclusiveWaiting(() => {
    heard += 1;
  });
  (await lock.acquireExclusive())();
  assert.equal(heard, 0, "the request did not have to wait");
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
