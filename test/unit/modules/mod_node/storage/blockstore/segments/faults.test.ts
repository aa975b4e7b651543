import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openSegmentStore, type SegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { contents, contentsOf, sample, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { copyOf, folder, SmallDisk, systemError, watched } from "./workshop.ts";

const full = { code: "STORE_FULL", message: /: ENOSPC: it was put there by the test; free space/ };

async function expectContent(at: string, blocks: readonly Block[]): Promise<void> {
  const notices: string[] = [];
  const store = await openSegmentStore(at, { onNotice: (text) => notices.push(text) });
  assert.deepEqual(await contents(store), contentsOf(blocks));
  assert.deepEqual(notices, [], "nothing was torn");
  await store.close();
}

async function each<T>(work: readonly Promise<T>[]): Promise<string[]> {
  return (await Promise.allSettled(work)).map((result) =>
    result.status === "fulfilled" ? "done" : (result.reason as { code: string }).code,
  );
}

test("a full disk is reported to all waiting callers, reads continue, and writing resumes when there is space", async () => {
  const at = folder();
  const disk = new SmallDisk(20_500);
  const store = await openSegmentStore(at, { fs: disk.fs, segmentBytes: 50_000 });
  const acknowledged: Block[] = [];
  let refused: Block | undefined;
  for (let seed = 0; refused === undefined; seed += 1) {
    const block = sample(seed, 1000);
    await store.put([block]);
    await store.sync().then(
      () => acknowledged.push(block),
      (error: Error) => {
        assert.match(error.message, full.message);
        refused = block;
      },
    );
  }
  assert.ok(acknowledged.length > 10);
  await expectContent(await copyOf(at), acknowledged);

  const waiting = samples(6, 1000, 100);
  const outcome = await each([...waiting.map((block) => store.put([block])), store.sync(), store.sync()]);
  // The first call tries to write; the others find space in memory, and sync reports the result.
  assert.deepEqual([outcome[0], outcome[6], outcome[7]], ["STORE_FULL", "STORE_FULL", "STORE_FULL"]);
  for (const { cid, bytes } of acknowledged) assert.deepEqual(await store.get(cid), bytes);
  await assert.rejects(store.delete([(acknowledged[0] as Block).cid]), full);
  await expectContent(await copyOf(at), acknowledged);

  disk.left = 1_000_000;
  await store.put(waiting);
  await store.sync();
  for (const block of [...acknowledged.slice(1), refused, ...waiting]) {
    assert.deepEqual(await store.get(block.cid), block.bytes);
  }
  const content = await contents(store);
  await store.close();
  const again = await openSegmentStore(at);
  assert.deepEqual(await contents(again), content);
  await again.close();
});

test("memory stays bounded on a full disk", async () => {
  const disk = new SmallDisk(1000);
  const store = await openSegmentStore(folder(), { fs: disk.fs, bufferedBytes: 10_000 });
  const outcome = await each(samples(100, 1000).map((block) => store.put([block])));
  assert.ok(outcome.filter((one) => one === "STORE_FULL").length >= 80, outcome.join());
  assert.ok((await store.stat()).blocks <= 20);
  disk.left = 1_000_000;
  await store.sync();
  await store.close();
});

test("a disk that is full at the start of a new segment loses no block", async () => {
  const at = folder();
  for (let left = 0; left < 60; left += 9) {
    const disk = new SmallDisk(Number.POSITIVE_INFINITY);
    const here = join(at, String(left));
    const store = await openSegmentStore(here, { fs: disk.fs, segmentBytes: 2000 });
    await store.put([sample(1, 1500)]);
    await store.sync();
    disk.left = left;
    await store.put([sample(2, 1500)]);
    await assert.rejects(store.sync(), full);
    await expectContent(await copyOf(here), [sample(1, 1500)]);
    disk.left = 10_000;
    await store.put([sample(3, 1500)]);
    await store.close();
    await expectContent(here, [sample(1, 1500), sample(2, 1500), sample(3, 1500)]);
  }
});

test("closing on a full disk fails, and acknowledged blocks stay", async () => {
  const at = folder();
  const disk = new SmallDisk(Number.POSITIVE_INFINITY);
  const store = await openSegmentStore(at, { fs: disk.fs });
  await store.put([sample(1)]);
  await store.sync();
  disk.left = 0;
  await store.put([sample(2)]);
  await assert.rejects(store.close(), full);
  await assert.rejects(store.get(sample(1).cid), { code: "STORE_CLOSED" });
  await expectContent(at, [sample(1)]);
});

/**
 * A store whose next flushes fail, with data that was written to its file and may not be on the
 * disk.
 */
async function unflushed(at: string): Promise<{ store: SegmentStore; heal: () => void; writes: () => number }> {
  let failing = false;
  let writes = 0;
  const store = await openSegmentStore(at, {
    fs: watched((operation) => {
      if (operation === "sync" && failing) throw systemError("EIO");
      if (operation === "write") writes += 1;
    }),
  });
  await store.put([sample(1, 2000)]);
  await store.sync();
  failing = true;
  await store.put([sample(2, 2000)]);
  const outcome = await each([store.sync(), store.sync()]);
  assert.deepEqual(outcome, ["STORE_FULL", "STORE_FULL"]);
  await assert.rejects(store.put([sample(3, 2000)]), { code: "STORE_FULL" });
  return {
    store,
    writes: () => writes,
    heal: () => {
      failing = false;
    },
  };
}

test("after a failed flush, everything is written again before it counts as durable", async () => {
  const at = folder();
  const { store, heal, writes } = await unflushed(at);
  heal();
  const before = writes();
  await store.sync();
  assert.equal(writes(), before + 1);
  await store.put([sample(3, 2000)]);
  await store.close();
  await expectContent(at, [sample(1, 2000), sample(2, 2000), sample(3, 2000)]);
});

test("data that the disk lost in a failed flush does not count as durable", async () => {
  const at = folder();
  const { store, heal } = await unflushed(at);
  heal();
  const file = join(at, (await readdir(at)).find((name) => name.endsWith(".car")) as string);
  const bytes = await readFile(file);
  await writeFile(file, bytes.fill(0, bytes.length - 500), { flag: "r+" });
  const broken = { code: "STORE_BROKEN" };
  await assert.rejects(store.sync(), broken);
  await assert.rejects(store.put([sample(4)]), broken);
  await assert.rejects(store.sync(), broken);
  assert.deepEqual(await store.get(sample(1, 2000).cid), sample(1, 2000).bytes);
  await assert.rejects(store.close(), broken);
  const again = await openSegmentStore(at);
  assert.deepEqual(await contents(again), contentsOf([sample(1, 2000)]));
  await again.close();
});

test("a failed write-through does not count as durable and is written again", async () => {
  const at = folder();
  let failing = false;
  const done: string[] = [];
  const store = await openSegmentStore(at, {
    fs: watched(
      (operation) => {
        if (operation === "sync" && failing) throw systemError("EIO");
        done.push(operation);
      },
      { through: true },
    ),
  });
  await store.put([sample(1, 2000)]);
  await store.sync();
  failing = true;
  await store.put([sample(2, 2000)]);
  assert.deepEqual(await each([store.sync(), store.sync()]), ["STORE_FULL", "STORE_FULL"]);
  await expectContent(await copyOf(at), [sample(1, 2000)]);
  failing = false;
  done.length = 0;
  await store.sync();
  assert.deepEqual(done, ["write", "sync"]);
  await store.close();
  await expectContent(at, [sample(1, 2000), sample(2, 2000)]);
});

test("an unreadable segment fails that read only", async () => {
  let failing = false;
  const store = await openSegmentStore(folder(), {
    fs: watched((operation) => {
      if (operation === "read" && failing) throw systemError("EIO");
    }),
  });
  await store.put([sample(1)]);
  await store.sync();
  failing = true;
  await assert.rejects(store.get(sample(1).cid), { code: "STORE_BROKEN", message: /EIO/ });
  failing = false;
  assert.deepEqual(await store.get(sample(1).cid), sample(1).bytes);
  await store.close();
});
