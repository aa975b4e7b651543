import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { RecentBlocks } from "#node/storage/blockstore/segments/recent_blocks.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { sample, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { folder, watched } from "./workshop.ts";

/** A store whose blocks are on the disk, its number of reads, and a stopped clock. */
async function shelf(t: TestContext, blocks: readonly Block[]) {
  const at = folder();
  const first = await openSegmentStore(at);
  await first.put(blocks);
  await first.close();
  const made = { reads: 0, now: 1000 };
  t.mock.method(performance, "now", () => made.now);
  const fs = watched((operation) => {
    if (operation === "read") made.reads += 1;
  });
  const store = await openSegmentStore(at, { fs, verifyOnRead: true });
  t.after(() => store.close());
  made.reads = 0;
  return Object.assign(made, { store });
}

test("a frequently requested small block is read from the disk once a second, and its removal is noticed", async (t) => {
  const block = sample(1, 4096);
  const setup = await shelf(t, [block]);
  const get = () => setup.store.get(block.cid);
  for (let times = 0; times < 6; times += 1) assert.deepEqual(await get(), block.bytes);
  assert.equal(setup.reads, 3, "the checksum is known from the second read on");
  assert.deepEqual(await setup.store.get(block.cid, new BufferPool()), block.bytes);
  assert.equal(setup.reads, 3, "also for readers with leased buffers");
  setup.now += 1001;
  await get();
  await get();
  assert.equal(setup.reads, 4);
  await setup.store.delete([block.cid]);
  assert.equal(await get(), undefined);
});

test("large blocks, and blocks in leased buffers, are not retained", async (t) => {
  const small = sample(1, 4096);
  const large = sample(2, 100_000);
  const setup = await shelf(t, [small, large]);
  const buffers = new BufferPool();
  for (let times = 0; times < 5; times += 1) {
    await setup.store.get(small.cid, buffers);
    await setup.store.get(large.cid);
  }
  assert.equal(setup.reads, 10);
});

test("the retained bytes are bounded, and no larger array is retained with a block", () => {
  const recent = new RecentBlocks();
  const blocks = samples(200, 4096);
  const location = (at: number) => ({ segment: 1, offset: at * 5000, length: 4096, headLength: 40 });
  const shared = new Uint8Array(2 ** 20);
  for (const [at, { cid, bytes }] of blocks.entries()) {
    const part = shared.subarray(100, 100 + bytes.length);
    part.set(bytes);
    recent.add(cid, location(at), part);
  }
  const remembered = blocks.flatMap(({ cid, bytes }, at) => {
    const found = recent.get(cid, location(at));
    assert.ok(found === undefined || found.buffer.byteLength === bytes.length);
    return found === undefined ? [] : [Buffer.compare(found, bytes)];
  });
  assert.deepEqual(
    remembered,
    Array.from({ length: 120 }, () => 0),
  );
  const [other, last] = blocks.slice(-2) as [Block, Block];
  assert.deepEqual(recent.get(last.cid, location(199)), last.bytes);
  assert.equal(recent.get(other.cid, location(199)), undefined, "another block at that location");
});
