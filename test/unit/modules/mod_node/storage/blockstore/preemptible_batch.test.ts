import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { defaultCid } from "#node/content/unixfs/build.ts";
import { importFile } from "#node/content/unixfs/import_file.ts";
import { ShardBuilder, shardPath } from "#node/content/unixfs/shard.ts";
import { parseChunker } from "#node/formats/unixfs/chunker/parse.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { PreemptibleBatch } from "#node/storage/blockstore/preemptible_batch.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";
import { blockOf } from "#test/unit/modules/mod_node/network/bitswap/support.ts";

const some = () => blockOf(randomBytes(100));

async function open(signal?: AbortSignal) {
  const store = memoryBlocks();
  const lock = new SharedLock();
  const batch = new PreemptibleBatch(store, lock, { signal });
  await batch.enter();
  return { store, lock, batch };
}

/** Whether a promise has settled by now. */
async function settled(promise: Promise<unknown> | undefined): Promise<boolean> {
  const yet = Symbol("open");
  await new Promise(setImmediate);
  return (await Promise.race([promise, yet])) !== yet;
}

test("a caller that wants the lock gets it when everything added is stored, and later blocks wait", async () => {
  const { store, lock, batch } = await open();
  const one = some();
  const other = some();
  batch.add(one);
  const release = await lock.acquireExclusive();
  assert.ok(await store.has(one.cid));
  assert.deepEqual(batch.unlinked(), [one.cid]);
  const adding = batch.add(other);
  const flushing = batch.flush();
  assert.equal(await settled(flushing), false);
  assert.deepEqual(batch.unlinked(), [one.cid]);
  release();
  await adding;
  await flushing;
  assert.ok(await store.has(other.cid));
  // The lock is granted a second time.
  (await lock.acquireExclusive())();
  batch.leave();
});

test("a step that must not be interrupted keeps the lock", async () => {
  const { lock, batch } = await open();
  const { promise, resolve } = Promise.withResolvers<void>();
  const step = batch.flushThen(() => promise);
  const excluding = lock.acquireExclusive();
  assert.equal(await settled(excluding), false);
  const next = batch.flushThen(async () => {});
  resolve();
  await step;
  const release = await excluding;
  assert.equal(await settled(next), false);
  release();
  await next;
  batch.leave();
});

test("a batch that leaves meanwhile does not take the lock again, and an aborted one reports the reason", async () => {
  const { lock, batch } = await open();
  const release = await lock.acquireExclusive();
  batch.leave();
  release();
  (await lock.acquireExclusive())();

  const leaving = new AbortController();
  const second = await open(leaving.signal);
  const acquired = await second.lock.acquireExclusive();
  const adding = second.batch.add(some());
  leaving.abort(new Error("enough"));
  await assert.rejects(async () => adding, { message: "enough" });
  await assert.rejects(second.batch.flush(), { message: "enough" });
  second.batch.leave();
  acquired();
  (await second.lock.acquireExclusive())();
});

test("a caller that waited for the lock before the batch entered gets it, too", async () => {
  const store = memoryBlocks();
  const lock = new SharedLock();
  const release = await lock.acquireExclusive();
  const batch = new PreemptibleBatch(store, lock);
  const entering = batch.enter();
  const excluding = lock.acquireExclusive();
  release();
  await entering;
  (await excluding)();
  batch.leave();
});

for (const trickle of [false, true]) {
  for (const rawLeaves of [false, true]) {
    test(`only the root of a file is unlinked: trickle ${trickle}, raw leaves ${rawLeaves}`, async () => {
      const { batch } = await open();
      const chunker = parseChunker("size-100");
      const bytes = Buffer.alloc(70_000, "the same leaf again and again");
      const source = (async function* () {
        for (let at = 0; at < bytes.length; at += 999) {
          yield bytes.subarray(at, at + 999);
          assert.ok(batch.unlinked().length < 1000);
        }
      })();
      const { cid } = await importFile(source, { ...defaultCid, chunker, rawLeaves, trickle }, batch.add);
      assert.deepEqual(batch.unlinked(), [cid]);
      batch.forget(cid);
      assert.deepEqual(batch.unlinked(), []);
      batch.leave();
    });
  }
}

test("only the root of a sharded directory is unlinked", async () => {
  const { batch } = await open();
  const builder = new ShardBuilder(defaultCid, batch.add);
  const blocks = Array.from({ length: 3000 }, (_, number) => ({ name: `entry ${number}`, block: some() }));
  const links = blocks.map(({ name, block }) => ({ link: { name, cid: block.cid, size: 100 }, path: shardPath(name) }));
  for (const { block } of blocks) batch.add(block);
  links.sort((one, other) => Buffer.compare(one.path, other.path));
  for (const { link, path } of links) await builder.add(link, path);
  const { cid }: { cid: CID } = await builder.end();
  assert.deepEqual(batch.unlinked(), [cid]);
  batch.leave();
});
