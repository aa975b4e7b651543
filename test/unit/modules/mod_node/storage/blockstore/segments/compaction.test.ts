import assert from "node:assert/strict";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { openSegmentStore, type SegmentStore } from "#node/storage/blockstore/segments/store.ts";
import {
  as,
  contents,
  contentsOf,
  dagPb,
  sample,
  samples,
} from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { copyOf, dump, folder, PowerCut, systemError, watched } from "./workshop.ts";

const segmentBytes = 8000;

async function sizes(at: string): Promise<number[]> {
  const names = (await readdir(at)).filter((name) => name.endsWith(".car"));
  return Promise.all(names.map(async (name) => (await stat(join(at, name))).size));
}
const total = async (at: string) => (await sizes(at)).reduce((sum, size) => sum + size, 0);

/**
 * Blocks in about ten segments, two thirds of which are deleted. Some have two forms, some were put
 * again.
 */
async function holey(store: SegmentStore, count = 200): Promise<void> {
  const blocks = samples(count, 300);
  await store.put(blocks);
  await store.put(blocks.slice(0, count / 5).map(({ cid, bytes }) => ({ cid: as(cid, dagPb), bytes })));
  await store.delete(blocks.filter((_, seed) => seed % 3 !== 0).map(({ cid }) => cid));
  await store.put(blocks.slice(count / 2, count / 2 + 10));
  await store.sync();
}

test("compaction frees the space of deleted blocks, and all space when nothing is left", async () => {
  const at = folder();
  const store = await openSegmentStore(at, { segmentBytes });
  await holey(store);
  const content = await contents(store);
  const before = await total(at);
  const compactionNotices = await store.stat();
  await store.compact();
  assert.deepEqual(await contents(store), content);
  const after = await total(at);
  assert.ok(after < before * 0.6, `${before} bytes became ${after}`);
  assert.ok((await store.stat()).bytes < compactionNotices.bytes);
  const cids = [];
  for await (const cid of store.keys()) cids.push(cid);
  await store.delete(cids);
  await store.compact();
  assert.ok((await total(at)) < 500, "only the header of a segment is left");
  assert.deepEqual(await contents(store), new Map());
  await store.put(samples(3));
  await store.close();
  const notices: string[] = [];
  const again = await openSegmentStore(at, { onNotice: (text) => notices.push(text) });
  assert.deepEqual(await contents(again), contentsOf(samples(3)));
  assert.deepEqual(notices, []);
  await again.close();
});

test("compaction does nothing when everything is live", async () => {
  const at = folder();
  const store = await openSegmentStore(at, { segmentBytes });
  await store.put(samples(200, 300));
  await store.sync();
  const names = await readdir(at);
  await store.compact();
  await store.compact();
  assert.deepEqual(await readdir(at), names);
  await store.close();
});

test("compaction ends: what it leaves is not compacted again", async () => {
  const at = folder();
  const store = await openSegmentStore(at, { segmentBytes });
  await holey(store);
  await store.compact();
  await store.compact();
  const names = await readdir(at);
  await store.compact();
  assert.deepEqual(await readdir(at), names);
  await store.close();
});

test("compaction needs no more space than one segment", async () => {
  const at = folder();
  let most = 0;
  let limit = Number.POSITIVE_INFINITY;
  const store = await openSegmentStore(at, {
    segmentBytes,
    fs: watched(async (operation) => {
      if (operation === "write" || operation === "sync" || operation === "remove")
        most = Math.max(most, await total(at));
      assert.ok(most <= limit, `${most} bytes`);
    }),
  });
  await holey(store);
  limit = (await total(at)) + segmentBytes;
  most = 0;
  await store.compact();
  assert.ok(most > 0);
  await store.close();
});

test("reads and writes continue during compaction", async () => {
  const at = folder();
  const store = await openSegmentStore(at, { segmentBytes: 50_000 });
  const remaining = samples(300, 1000);
  await store.put(remaining);
  let busy = true;
  let reads = 0;
  const reader = async (from: number) => {
    for (let seed = from; busy; seed = (seed + 7) % remaining.length) {
      const { cid, bytes } = remaining[seed] as (typeof remaining)[0];
      const got = await store.get(cid);
      assert.ok(got !== undefined && Buffer.compare(got, bytes) === 0, `${cid}`);
      reads += 1;
      // Data in memory is read without a tick of the event loop.
      await nextTurn();
    }
  };
  const readers = [0, 1, 2, 3].map(reader);
  const late = [];
  for (let round = 0; round < 4; round += 1) {
    const passing = samples(200, 1000, 1000 + round * 200);
    await store.put(passing);
    await store.delete(passing.map(({ cid }) => cid));
    const compacting = store.compact();
    for (let seed = 0; seed < 30; seed += 1) {
      const block = sample(10_000 + round * 30 + seed, 1000);
      await store.put([block]);
      late.push(block);
      if (seed % 10 === 0) await store.delete([(late.shift() as (typeof late)[0]).cid]);
    }
    await compacting;
  }
  busy = false;
  await Promise.all(readers);
  assert.ok(reads > 100);
  const expected = contentsOf([...remaining, ...late]);
  assert.deepEqual(await contents(store), expected);
  await store.close();
  const copy = await copyOf(at, { index: false });
  const rebuilt = await openSegmentStore(copy);
  assert.deepEqual(await contents(rebuilt), expected);
  await rebuilt.close();
  assert.deepEqual(await dump(copy), await dump(at));
});

test("a power cut at any step of a compaction loses no block and brings none back", async () => {
  const at = folder();
  let cutting = false;
  const copies: string[] = [];
  const power: PowerCut = new PowerCut(at, async (operation) => {
    if (cutting && operation !== "read") copies.push(await power.copy());
  });
  const store = await openSegmentStore(at, { segmentBytes, fs: power.fs });
  await holey(store, 110);
  const content = await contents(store);
  cutting = true;
  await store.compact();
  cutting = false;
  await store.close();
  assert.ok(copies.length > 15, `${copies.length} steps`);
  for (const [step, copy] of copies.entries()) {
    for (const from of step % 2 === 0 ? [copy] : [await copyOf(copy, { index: false })]) {
      const cut = await openSegmentStore(from, { segmentBytes });
      assert.deepEqual(await contents(cut), content, `step ${step}`);
      assert.equal((await cut.stat()).blocks, content.size);
      if (step % 5 === 0) {
        await cut.compact();
        assert.deepEqual(await contents(cut), content, `step ${step}, compacted`);
      }
      await cut.close();
    }
  }
});

test("a fault at any step of a compaction ends the compaction and nothing else", async () => {
  let steps = Number.POSITIVE_INFINITY;
  for (let fault = 0; fault < steps; fault += 1) {
    const at = folder();
    let step = -1;
    const store = await openSegmentStore(at, {
      segmentBytes,
      fs: watched(() => {
        if (step >= 0 && step++ === fault) throw systemError("EIO");
      }),
    });
    await holey(store, 110);
    const content = await contents(store);
    step = 0;
    // A failed flush may be repeated before anybody requests it.
    await store.compact().catch((error: Error) => assert.match(error.message, /EIO/));
    if (step <= fault) steps = fault;
    step = -1;
    assert.deepEqual(await contents(store), content, `step ${fault}`);
    await store.put([sample(7777)]);
    await store.compact();
    const expected = contentsOf([sample(7777)]);
    for (const [key, value] of content) expected.set(key, value);
    assert.deepEqual(
      new Map([...(await contents(store))].sort()),
      new Map([...expected].sort()),
      `step ${fault}, again`,
    );
    await store.close();
    const rebuilt = await openSegmentStore(await copyOf(at, { index: false }));
    assert.deepEqual(
      new Map([...(await contents(rebuilt))].sort()),
      new Map([...expected].sort()),
      `step ${fault}, rebuilt`,
    );
    await rebuilt.close();
  }
  assert.ok(steps > 15, `${steps} steps`);
});

test("compaction stops when its signal aborts", async () => {
  const at = folder();
  const stop = new AbortController();
  let reads = 0;
  const store = await openSegmentStore(at, {
    segmentBytes,
    fs: watched((operation) => {
      if (operation === "read" && ++reads === 30) stop.abort();
    }),
  });
  await holey(store);
  const content = await contents(store);
  reads = 25;
  await assert.rejects(store.compact(stop.signal), { name: "AbortError" });
  assert.deepEqual(await contents(store), content);
  await store.close();
});
