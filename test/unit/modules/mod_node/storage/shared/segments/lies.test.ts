/** Objects of the store that are missing, or are not what was written: for a while, or for good. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Block } from "#node/storage/blockstore/store.ts";
import { readBlockList, writeBlockList } from "#node/storage/shared/segments/block_lists.ts";
import { MemoryObjects } from "#test/support/engines/memory_objects.ts";
import { contents, contentsOf, samples } from "../../blockstore/samples.ts";
import { type Host, SharedStore } from "./hosts.ts";

/** More blocks than an index in the log has. */
const MANY = 600;

async function put({ blocks: store }: Host, blocks: readonly Block[]): Promise<void> {
  await store.put(blocks);
  await store.sync();
}

/** A store with each of these in a segment of its own, the host that wrote them, and others. */
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
  // They are in its index, and it asks the store for nothing more.
  await one.blocks.stat();
  return { store, one, begin, notices };
}

function cutOff({ contents }: SharedStore, key: string, bytes: number): void {
  const object = contents.get(key);
  assert.ok(object);
  contents.set(key, { ...object, bytes: object.bytes.subarray(0, bytes) });
}

const keysLike = ({ contents }: SharedStore, end: string) => [...contents.keys()].filter((key) => key.endsWith(end));

test("the index of another segment is not taken for that of a segment of the same shape", async (t) => {
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

test("what a host lacks while objects are away is not given up for all hosts, and is known there after a start with the objects back", async (t) => {
  const blocks = samples(2 * MANY);
  const { store, one, begin, notices } = await storeWith(t, [blocks.slice(0, MANY), blocks.slice(MANY)]);
  const kept = new Map(store.contents);
  // One is gone, of the other a part is there.
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
  for (const [key, object] of kept) store.contents.set(key, object);
  await other.blocks.compact();
  await one.blocks.compact();
  assert.deepEqual(await contents(one.blocks), contentsOf(blocks));
  await other.close();
  const again = await begin(other.folder);
  assert.deepEqual(await contents(again.blocks), contentsOf(blocks));
  const { segments, live, bytes } = await again.blocks.upkeep.figures();
  assert.ok(segments > 0 && live < bytes);
});

for (const [how, bytes] of [
  ["missing", undefined],
  ["cut off", 100],
] as const) {
  test(`a segment that is ${how} is told and kept, while the others are merged and what is left of them is deleted`, async (t) => {
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
    assert.equal((await other.blocks.upkeep.figures()).segments, 2);
    assert.deepEqual(keysLike(store, ".car").filter((each) => each !== key).length, 1);
    for (const { cid, bytes } of blocks.slice(1)) assert.deepEqual(await other.blocks.get(cid), bytes);
  });
}

test("a list of blocks with other blocks is not read, though it is as long", async () => {
  const objects = new MemoryObjects();
  let ids = 0;
  const newId = () => `1-${++ids}`;
  const cids = samples(MANY).map(({ cid }) => cid);
  const [one, other] = [
    await writeBlockList(objects, cids.slice(0, MANY / 2), newId),
    await writeBlockList(objects, cids.slice(MANY / 2), newId),
  ];
  assert.ok("object" in one && "object" in other);
  assert.equal((await readBlockList(objects, one)).length, MANY / 2);
  objects.contents.set(one.object, objects.contents.get(other.object) as never);
  await assert.rejects(readBlockList(objects, one), { code: "STORE_UNAVAILABLE", message: /is damaged/ });
  // Of an older program, which wrote no sum.
  const { sum: _, ...unsummed } = other;
  assert.equal((await readBlockList(objects, unsummed)).length, MANY / 2);
});
