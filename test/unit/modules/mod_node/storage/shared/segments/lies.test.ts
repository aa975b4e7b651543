/** Objects of the store that are missing or have wrong content, temporarily or permanently. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { verifyBlocks } from "#node/storage/blockstore/verify_all.ts";
import { readBlockList, writeBlockList } from "#node/storage/shared/segments/block_lists.ts";
import { MemoryObjects, unavailable } from "#test/support/engines/memory_objects.ts";
import { contents, contentsOf, samples } from "../../blockstore/samples.ts";
import { type Host, SharedStore } from "./hosts.ts";

/** More blocks than an index in the log may have. */
const MANY = 600;

async function put({ blocks: store }: Host, blocks: readonly Block[]): Promise<void> {
  await store.put(blocks);
  await store.sync();
}

/**
 * A store with each of these blocks in its own segment, the host that wrote them, and other hosts.
 */
async function storeWith(t: TestContext, segments: readonly (readonly Block[])[]) {
  const store = new SharedStore();
  const notices: string[] = [];
  const begin = async (folder?: string) => {
    const onNotice = (text: string) => notices.push(text);
    const host = await store.open({ graceMs: 0, segmentBytes: 128 * 1024, onNotice, ...(folder && { folder }) });
    t.after(() => host.close().catch(() => {}));
    return host;
  };
  const one = await begin();
  for (const blocks of segments) await put(one, blocks);
  // The result needs a complete index, so after this the host requests nothing more from the store
  // for it.
  await one.blocks.stat();
  return { store, one, begin, notices };
}

function cutOff({ contents }: SharedStore, key: string, bytes: number): void {
  const object = contents.get(key);
  assert.ok(object);
  contents.set(key, { ...object, bytes: object.bytes.subarray(0, bytes) });
}

const keysLike = ({ contents }: SharedStore, end: string) => [...contents.keys()].filter((key) => key.endsWith(end));

test("the index of another segment is not accepted for a segment of the same shape", async (t) => {
  const blocks = samples(2 * MANY);
  const { store, one, begin } = await storeWith(t, [blocks.slice(0, MANY), blocks.slice(MANY)]);
  const [first, second] = keysLike(store, ".idx") as [string, string];
  store.contents.set(first, store.contents.get(second) as never);
  const [fault] = await Array.fromAsync(one.blocks.upkeep.verify({ read: false }));
  assert.deepEqual(fault, { object: first, fault: "is damaged" });
  const other = await begin();
  await other.blocks.compact();
  await other.blocks.compact();
  for (const host of [one, other]) assert.deepEqual(await contents(host.blocks), contentsOf(blocks));
});

test("blocks that a host lacks while objects are missing are not given up for all hosts, and return after a start with the objects back", async (t) => {
  const blocks = samples(2 * MANY);
  const { store, one, begin, notices } = await storeWith(t, [blocks.slice(0, MANY), blocks.slice(MANY)]);
  const retained = new Map(store.contents);
  // One object is gone, and of the other a part exists.
  for (const key of keysLike(store, ".idx")) store.contents.delete(key);
  const [gone, shortened] = keysLike(store, ".car") as [string, string];
  store.contents.delete(gone);
  cutOff(store, shortened, 1000);
  const other = await begin();
  await other.blocks.compact();
  for (const key of [gone, shortened])
    assert.ok(
      notices.some((text) => text.startsWith(`memory:${key}: `)),
      key,
    );
  for (const [key, object] of retained) store.contents.set(key, object);
  await other.blocks.compact();
  await one.blocks.compact();
  assert.deepEqual(await contents(one.blocks), contentsOf(blocks));
  await other.close();
  const again = await begin(other.folder);
  assert.deepEqual(await contents(again.blocks), contentsOf(blocks));
  const { segments, live, bytes } = await again.blocks.upkeep.metrics();
  assert.ok(segments > 0 && live < bytes);
});

for (const [how, bytes] of [
  ["missing", undefined],
  ["cut off", 100],
] as const) {
  test(`a segment that is ${how} is reported and stays, while the others are merged and deleted`, async (t) => {
    const blocks = samples(20, 300);
    const { store, begin, notices } = await storeWith(
      t,
      blocks.map((block) => [block]),
    );
    const [key] = keysLike(store, ".car") as [string];
    if (bytes === undefined) store.contents.delete(key);
    else cutOff(store, key, bytes);
    const other = await begin();
    await other.blocks.compact();
    assert.ok(notices.some((text) => text.includes(key)));
    assert.equal((await other.blocks.upkeep.metrics()).segments, 2);
    assert.deepEqual(keysLike(store, ".car").filter((each) => each !== key).length, 1);
    for (const { cid, bytes } of blocks.slice(1)) assert.deepEqual(await other.blocks.get(cid), bytes);
  });
}

test("a list with other blocks is not read, even if it has the same length", async () => {
  const objects = new MemoryObjects();
  let ids = 0;
  const newId = () => `1-${++ids}`;
  const cids = samples(MANY).map(({ cid }) => cid);
  const one = await writeBlockList(objects, cids.slice(0, MANY / 2), newId);
  const other = await writeBlockList(objects, cids.slice(MANY / 2), newId);
  assert.ok("object" in one && "object" in other);
  assert.equal((await readBlockList(objects, one)).length, MANY / 2);
  objects.contents.set(one.object, objects.contents.get(other.object) as never);
  await assert.rejects(readBlockList(objects, one), { code: "STORE_UNAVAILABLE", message: /is damaged/ });
  // An older program wrote no sum.
  const { sum: _, ...unsummed } = other;
  assert.equal((await readBlockList(objects, unsummed)).length, MANY / 2);
});

/** Inverts a byte of a block in every object that contains it. */
function damage({ contents: objects }: SharedStore, { bytes }: Block): void {
  for (const [key, object] of objects) {
    const at = Buffer.from(object.bytes).indexOf(bytes);
    if (at < 0) continue;
    const changed = Uint8Array.from(object.bytes);
    changed[at] = (changed[at] as number) ^ 1;
    objects.set(key, { ...object, bytes: changed });
  }
}

test("a block with a lost, truncated or damaged object is stored again for all hosts when any host puts it", async (t) => {
  const losses: Readonly<Record<string, (store: SharedStore, lost: Block) => void>> = {
    lost: (store) => store.contents.delete(keysLike(store, ".car")[1] as string),
    "cut off": (store) => cutOff(store, keysLike(store, ".car")[1] as string, 700),
    damaged: damage,
  };
  for (const [how, lose] of Object.entries(losses)) {
    for (const byWriter of how === "damaged" ? [false] : [false, true]) {
      const blocks = samples(6, 1000);
      const retained = blocks.slice(0, 3);
      const lost = blocks.slice(3);
      const { store, one, begin, notices } = await storeWith(t, [retained, lost]);
      const bad = lost[0] as Block;
      lose(store, bad);
      const other = await begin();
      await assert.rejects(other.blocks.get(bad.cid), /add the same content again/, how);
      const reports: string[] = [];
      const host = byWriter ? one : other;
      await host.blocks.put(blocks, { onNew: (cid) => reports.push(String(cid)) });
      await host.blocks.sync();
      assert.deepEqual(reports, [], how);
      assert.equal(notices.filter((text) => text.includes("lost or damaged")).length, 1, how);
      // The third host has nothing on its own disk, as if the other hosts had ended.
      const third = await begin();
      for (const { blocks: each } of [one, other, third])
        assert.deepEqual(await contents(each), contentsOf(blocks), how);
      const { requests } = host.objects.metrics.put;
      await host.blocks.put(blocks);
      await host.blocks.sync();
      assert.equal(host.objects.metrics.put.requests, requests, how);
    }
  }
});

test("damage that only a check without the cache finds is remembered, and repaired by the next put", async (t) => {
  const blocks = samples(3, 1000);
  const { store, one, begin } = await storeWith(t, [blocks]);
  const bad = blocks[1] as Block;
  damage(store, bad);
  assert.equal(await one.blocks.check(bad.cid), false);
  await put(one, blocks);
  assert.equal(await one.blocks.check(bad.cid), true);
  const other = await begin();
  assert.deepEqual(await contents(other.blocks), contentsOf(blocks));
});

test("reads report a lost object once, with a block, and count its blocks until they are stored again", async (t) => {
  const blocks = samples(3, 1000);
  const { store, begin } = await storeWith(t, [blocks]);
  const [key] = keysLike(store, ".car") as [string];
  store.contents.delete(key);
  const other = await begin();
  const service = new BlockService(other.blocks);
  const found: string[] = [];
  service.damaged.onFound = (sentence) => found.push(sentence);
  for (const { cid } of [...blocks, ...blocks]) await assert.rejects(service.get(cid), { code: "SEGMENT_GONE" });
  assert.equal(found.length, 1);
  assert.ok(found[0]?.startsWith(`a block is lost or damaged: ${blocks[0]?.cid} in memory:${key}: segment `), found[0]);
  assert.equal(service.damaged.count, 3);
  await service.put(blocks);
  assert.equal(service.damaged.problem, undefined);
});

test("a check of all blocks requests long ranges, and names damaged and lost segments", async (t) => {
  const blocks = samples(300, 1000);
  const gone = samples(303, 1000).slice(300);
  const { store, one, begin } = await storeWith(t, [blocks, gone]);
  const bad = blocks[150] as Block;
  damage(store, bad);
  const lost = keysLike(store, ".car").at(-1) as string;
  store.contents.delete(lost);
  for (const { blocks: checked, objects } of [one, await begin()]) {
    await checked.stat();
    const { requests } = objects.metrics.get;
    const faulty: string[] = [];
    let count = 0;
    for await (const { cid, fault } of verifyBlocks(checked, undefined)) {
      count += 1;
      if (fault !== undefined) faulty.push(String(cid));
    }
    assert.equal(count, 303);
    assert.deepEqual(faulty.sort(), [bad, ...gone].map(({ cid }) => String(cid)).sort());
    const requestCount = objects.metrics.get.requests - requests;
    assert.ok(requestCount <= 10, `${requestCount} requests`);
  }
});

test("an object is looked up once for all its blocks, and not fetched by a host that has its bytes", async (t) => {
  const blocks = samples(200, 1000);
  const { one } = await storeWith(t, [blocks]);
  const { head, get, put: puts } = one.objects.metrics;
  const heads = head.requests;
  const gets = get.requests;
  const sent = puts.requests;
  await put(one, blocks);
  assert.deepEqual([head.requests - heads, get.requests - gets, puts.requests - sent], [2, 0, 0]);
});

test("a put of stored blocks fails while the object store is unreachable", async (t) => {
  const blocks = samples(2, 1000);
  const { one, begin } = await storeWith(t, [blocks]);
  const other = await begin();
  await other.blocks.stat();
  for (const { objects } of [one, other])
    objects.faults = {
      before: () => {
        throw unavailable();
      },
    };
  for (const host of [one, other]) await assert.rejects(put(host, blocks), { code: "STORE_UNAVAILABLE" });
  other.objects.faults = {};
  await put(other, blocks);
});
