import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedLock } from "#node/util/async/lock.ts";

/** Whether a promise has come to its end by now. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol("open");
  await new Promise(setImmediate);
  return (await Promise.race([promise, open])) !== open;
}

test("many share it, one excludes all", async () => {
  const lock = new SharedLock();
  const [one, two] = [await lock.share(), await lock.share()];
  const exclusive = lock.exclude();
  assert.ok(lock.contended);
  one();
  assert.equal(await settled(exclusive), false);
  two();
  const release = await exclusive;
  const later = lock.share();
  assert.equal(await settled(later), false);
  release();
  (await later)();
});

test("who comes after one that waits to exclude, waits behind it", async () => {
  const lock = new SharedLock();
  const first = await lock.share();
  const exclusive = lock.exclude();
  const late = lock.share();
  assert.equal(await settled(late), false);
  first();
  (await exclusive)();
  (await late)();
  assert.equal(lock.contended, false);
});

test("releasing twice releases once", async () => {
  const lock = new SharedLock();
  const [one, two] = [await lock.share(), await lock.share()];
  one();
  one();
  const exclusive = lock.exclude();
  assert.equal(await settled(exclusive), false);
  two();
  (await exclusive)();
});

test("who is called off leaves the queue, and those behind go on", async () => {
  const lock = new SharedLock();
  const held = await lock.share();
  const controller = new AbortController();
  const exclusive = lock.exclude(controller.signal);
  const behind = lock.share();
  controller.abort(new Error("called off"));
  await assert.rejects(exclusive, /called off/);
  (await behind)();
  held();
  (await lock.exclude())();
});

test("whoever has asked to hears of each who has to wait for having it exclusively", async () => {
  const lock = new SharedLock();
  let heard = 0;
  const end = lock.whenWanted(() => {
    heard += 1;
  });
  (await lock.exclude())();
  assert.equal(heard, 0, "nobody had to wait");
  const release = await lock.share();
  const waiting = lock.exclude();
  assert.equal(heard, 1);
  lock.share().then((shared) => shared());
  assert.equal(heard, 1);
  end();
  const other = lock.exclude();
  assert.equal(heard, 1);
  release();
  (await waiting)();
  (await other)();
});
