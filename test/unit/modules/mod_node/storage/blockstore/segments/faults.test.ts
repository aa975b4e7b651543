import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openSegmentStore, type SegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { contents, contentsOf, sample, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { copyOf, folder, SmallDisk, systemError, watched } from "./workshop.ts";

const full = { code: "STORE_FULL", message: /: ENOSPC: it was put there by the test; free space/ };

async function expectHeld(at: string, blocks: readonly Block[]): Promise<void> {
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

test("a full disk is told to all who wait, reads go on, and writing goes on when there is room", async () => {
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
  await expectHeld(await copyOf(at), acknowledged);

  const waiting = samples(6, 1000, 100);
  const told = await each([...waiting.map((block) => store.put([block])), store.sync(), store.sync()]);
  // The first one tries; the others find room in memory, and learn from sync how it ended.
  assert.deepEqual([told[0], told[6], told[7]], ["STORE_FULL", "STORE_FULL", "STORE_FULL"]);
  for (const { cid, bytes } of acknowledged) assert.deepEqual(await store.get(cid), bytes);
  await assert.rejects(store.delete([(acknowledged[0] as Block).cid]), full);
  await expectHeld(await copyOf(at), acknowledged);

  disk.left = 1_000_000;
  await store.put(waiting);
  await store.sync();
  for (const block of [...acknowledged.slice(1), refused, ...waiting]) {
    assert.deepEqual(await store.get(block.cid), block.bytes);
  }
  const held = await contents(store);
  await store.close();
  const again = await openSegmentStore(at);
  assert.deepEqual(await contents(again), held);
  await again.close();
});

test("a full disk bounds what is held in memory", async () => {
  const disk = new SmallDisk(1000);
  const store = await openSegmentStore(folder(), { fs: disk.fs, bufferedBytes: 10_000 });
  const told = await each(samples(100, 1000).map((block) => store.put([block])));
  assert.ok(told.filter((one) => one === "STORE_FULL").length >= 80, told.join());
  assert.ok((await store.stat()).blocks <= 20);
  disk.left = 1_000_000;
  await store.sync();
  await store.close();
});

test("a full disk at a new segment", async () => {
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
    await expectHeld(await copyOf(here), [sample(1, 1500)]);
    disk.left = 10_000;
    await store.put([sample(3, 1500)]);
    await store.close();
    await expectHeld(here, [sample(1, 1500), sample(2, 1500), sample(3, 1500)]);
  }
});

test("a store that is closed on a full disk says so, and keeps what was acknowledged", async () => {
  const at = folder();
  const disk = new SmallDisk(Number.POSITIVE_INFINITY);
  const store = await openSegmentStore(at, { fs: disk.fs });
  await store.put([sample(1)]);
  await store.sync();
  disk.left = 0;
  await store.put([sample(2)]);
  await assert.rejects(store.close(), full);
  await assert.rejects(store.get(sample(1).cid), { code: "STORE_CLOSED" });
  await expectHeld(at, [sample(1)]);
});

/** A store whose next flushes fail, with something that came to its file but not for sure to the disk. */
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
  const told = await each([store.sync(), store.sync()]);
  assert.deepEqual(told, ["STORE_FULL", "STORE_FULL"]);
  await assert.rejects(store.put([sample(3, 2000)]), { code: "STORE_FULL" });
  return {
    store,
    writes: () => writes,
    heal: () => {
      failing = false;
    },
  };
}

test("after a failed flush everything is written once more before it is called safe", async () => {
  const at = folder();
  const { store, heal, writes } = await unflushed(at);
  heal();
  const before = writes();
  await store.sync();
  assert.equal(writes(), before + 1);
  await store.put([sample(3, 2000)]);
  await store.close();
  await expectHeld(at, [sample(1, 2000), sample(2, 2000), sample(3, 2000)]);
});

test("what the disk lost in a failed flush is not called safe", async () => {
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

test("what could not be written through is not called safe, and is written once more", async () => {
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
  await expectHeld(await copyOf(at), [sample(1, 2000)]);
  failing = false;
  done.length = 0;
  await store.sync();
  assert.deepEqual(done, ["write", "sync"]);
  await store.close();
  await expectHeld(at, [sample(1, 2000), sample(2, 2000)]);
});

test("a segment that cannot be read is an error of that read", async () => {
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
