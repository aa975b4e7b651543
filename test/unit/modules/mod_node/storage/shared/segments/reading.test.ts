/** Reading blocks of other hosts: what is fetched, cached, and noticed as damaged. */
import assert from "node:assert/strict";
import { readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { failure } from "#node/util/errors.ts";
import { eventually } from "#test/support/eventually.ts";
import { sample, samples } from "../../blockstore/samples.ts";
import { type Host, SharedStore } from "./hosts.ts";

const MIB = 2 ** 20;
const BLOCK = 256 * 1024;

/** A store with one segment of 8 MiB, and a host without any part of it on its disk. */
async function coldHost(options: Parameters<SharedStore["open"]>[0] = {}) {
  const store = new SharedStore();
  const writer = await store.open({ segmentBytes: 64 * MIB });
  const blocks = samples(32, BLOCK);
  await writer.blocks.put(blocks);
  await writer.blocks.sync();
  await writer.close();
  const host = await store.open(options);
  await host.blocks.stat();
  return { store, host, blocks };
}

const chunksOf = async ({ folder }: Host) => (await readdir(join(folder, "chunks"))).sort();

async function readAll(
  { blocks: store }: Host,
  blocks: readonly { cid: Parameters<typeof store.get>[0]; bytes: Uint8Array }[],
) {
  for (const { cid, bytes } of blocks)
    assert.ok(Buffer.compare((await store.get(cid)) ?? new Uint8Array(), bytes) === 0);
}

test("a sequential reader causes large requests, each once, ahead of it", async (t) => {
  const { store, host, blocks } = await coldHost();
  await readAll(host, blocks);
  const { requests, received } = host.objects.metrics.get;
  assert.ok(requests <= 6, `${requests} requests`);
  assert.ok(received <= 9 * MIB, `${received} bytes`);
  await readAll(host, [...blocks].reverse());
  // Everything can also be read after a restart, without the store.
  await host.close();
  const again = await store.open({ folder: host.folder });
  t.after(() => again.close());
  again.objects.faults = { before: () => Promise.reject(failure("STORE_UNAVAILABLE", { reason: "it is away" })) };
  await readAll(again, blocks);
  assert.equal(again.objects.metrics.get.requests, 0);
  await assert.rejects(again.blocks.check((blocks[0] as (typeof blocks)[0]).cid), { code: "STORE_UNAVAILABLE" });
});

test("a sequential reader causes requests for the segment that was written next, whatever was read there before", async (t) => {
  const store = new SharedStore();
  const writer = await store.open({ segmentBytes: 8 * MIB });
  const blocks = samples(96, BLOCK);
  for (let from = 0; from < blocks.length; from += 16) {
    await writer.blocks.put(blocks.slice(from, from + 16));
    await writer.blocks.sync();
  }
  await writer.close();
  const host = await store.open();
  t.after(() => host.close());
  await host.blocks.stat();
  // Reads of files begin like this, with the nodes above the data.
  const { get } = host.objects.metrics;
  await readAll(
    host,
    [50, 80].map((at) => blocks[at] as (typeof blocks)[0]),
  );
  assert.equal(get.requests, 2);
  await readAll(host, blocks);
  // Single chunks are fetched until the reader is known to be sequential.
  assert.ok(get.requests <= 12, `${get.requests} requests`);
  assert.ok(get.received <= 26 * MIB, `${get.received} bytes`);
});

test("a single block costs a chunk, and adjacent blocks that are requested together share one", async (t) => {
  const { host, blocks } = await coldHost();
  t.after(() => host.close());
  const at = (index: number) => blocks[index] as (typeof blocks)[0];
  await readAll(host, [at(30), at(1)]);
  assert.equal(host.objects.metrics.get.requests, 2);
  assert.ok(host.objects.metrics.get.received <= 2 * MIB);
  const buffers = new BufferPool();
  await Promise.all(
    [at(17), at(18)].map(async ({ cid, bytes }) => {
      const got = (await host.blocks.get(cid, buffers)) as Uint8Array;
      assert.ok(Buffer.compare(got, bytes) === 0);
      buffers.release(got);
    }),
  );
  assert.equal(host.objects.metrics.get.requests, 3);
});

test("reading short segments takes little more memory than they have bytes", async (t) => {
  const store = new SharedStore();
  const writer = await store.open();
  const blocks = samples(40, 500);
  for (const block of blocks) {
    await writer.blocks.put([block]);
    await writer.blocks.sync();
  }
  await writer.close();
  const host = await store.open();
  t.after(() => host.close());
  await host.blocks.stat();
  const allocate = t.mock.method(Buffer, "allocUnsafeSlow");
  await Promise.all(blocks.map(({ cid }) => host.blocks.get(cid)));
  assert.equal(host.objects.metrics.get.requests, blocks.length);
  const bytes = allocate.mock.calls.reduce((sum, call) => sum + (call.arguments[0] as number), 0);
  assert.ok(bytes < 8 * MIB, `${bytes} bytes`);
});

test("the cache stays within its size, and the least recently used entries go first", async (t) => {
  const { host, blocks } = await coldHost({ cacheBytes: 3 * MIB });
  t.after(() => host.close());
  await readAll(host, blocks);
  await readAll(host, blocks.slice(0, 4));
  await eventually("no more than the cache holds is on the disk", async () => (await chunksOf(host)).length <= 3);
  let bytes = 0;
  for (const name of await chunksOf(host)) bytes += (await stat(join(host.folder, "chunks", name))).size;
  assert.ok(bytes <= 3 * MIB);
});

test("damaged, truncated or removed files of the cache are read from the store again, without an error", async (t) => {
  const { host, blocks } = await coldHost();
  t.after(() => host.close());
  await readAll(host, blocks);
  await eventually("everything is kept", async () => (await chunksOf(host)).length === 9);
  const [first, second, third] = (await chunksOf(host)).map((name) => join(host.folder, "chunks", name)) as [
    string,
    string,
    string,
  ];
  const bytes = await readFile(first);
  bytes.fill(1, 1000, 2000);
  await writeFile(first, bytes);
  await truncate(second, 10);
  await rm(third);
  const before = host.objects.metrics.get.requests;
  await readAll(host, blocks);
  assert.ok(host.objects.metrics.get.requests > before);
  await readAll(host, blocks);
});

test("a segment of this host is read from its own file, or from the store when that is damaged", async (t) => {
  const store = new SharedStore();
  const host = await store.open();
  t.after(() => host.close());
  const blocks = samples(3, 10_000);
  await host.blocks.put(blocks);
  await host.blocks.sync();
  await readAll(host, blocks);
  assert.equal(host.objects.metrics.get.requests, 0);
  const [name] = await readdir(join(host.folder, "segments"));
  const path = join(host.folder, "segments", name as string);
  const bytes = await readFile(path);
  bytes.fill(7, 200, 5000);
  await writeFile(path, bytes);
  await eventually("the segment is in the index", async () => (await host.blocks.stat()).blocks === 3);
  await readAll(host, blocks);
  assert.ok(host.objects.metrics.get.requests > 0);
});

test("damage in the store is reported with the block that it affects", async (t) => {
  const { store, host, blocks } = await coldHost();
  t.after(() => host.close());
  for (const [key, object] of store.contents) {
    if (!key.endsWith(".car")) continue;
    const bytes = Uint8Array.from(object.bytes);
    bytes.fill(3, 100, 200);
    store.contents.set(key, { ...object, bytes });
  }
  const { cid } = sample(0, BLOCK);
  await assert.rejects(host.blocks.get(cid), { code: "BLOCK_CORRUPT" });
  assert.equal(await host.blocks.check(cid), false);
  await readAll(host, blocks.slice(1));
});

test("a reader of all blocks reads one segment after the other, each from beginning to end", async (t) => {
  const store = new SharedStore();
  const one = await store.open();
  const other = await store.open();
  t.after(() => Promise.allSettled([one.close(), other.close()]));
  const blocks = samples(30, 300);
  for (let from = 0; from < blocks.length; from += 10) {
    await one.blocks.put(blocks.slice(from, from + 10));
    await one.blocks.sync();
  }
  const listed = (await Array.fromAsync(other.blocks.keysToRead())).map(String);
  assert.deepEqual(
    listed,
    blocks.map(({ cid }) => cid.toString()),
  );
});
