import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { segmentLength } from "#node/storage/blockstore/segments/disk_space.ts";
import { diskFs } from "#node/storage/blockstore/segments/files.ts";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import { sample, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { folder } from "./workshop.ts";

const mebibyte = 1024 * 1024;

/** The real file system, which reports the free space that the test sets. */
const sized = (free: () => number, total: number) => ({ ...diskFs, space: async () => ({ free: free(), total }) });

const segmentsOf = async (at: string) => (await readdir(at)).filter((name) => name.endsWith(".car"));

test("new blocks leave the space of one segment on the disk, and deletions may use it", async () => {
  let free = 10_000;
  const options = { fs: sized(() => free, 100_000), segmentBytes: 5000 };
  const store = await openSegmentStore(folder(), options);
  await store.put([sample(1, 4000)]);
  await assert.rejects(store.put([sample(2, 4000)]), {
    code: "STORE_FULL",
    message: /: 6.0 kB are free on the disk, 5.0 kB of them reserved for maintenance; free space or move the repo/,
  });
  await store.sync();
  free = 1000;
  await assert.rejects(store.put([sample(2, 2000)]), { code: "STORE_FULL" });
  assert.deepEqual(await store.delete([sample(1, 4000).cid]), [true]);
  free = 20_000;
  await store.put([sample(2, 4000)]);
  assert.deepEqual(await store.get(sample(2, 4000).cid), sample(2, 4000).bytes);
  await store.close();
});

test("concurrent puts share the free space", async () => {
  const store = await openSegmentStore(folder(), { fs: sized(() => 10_000, 100_000), segmentBytes: 5000 });
  const outcomes = await Promise.allSettled(samples(20, 1000).map((block) => store.put([block])));
  const taken = outcomes.filter(({ status }) => status === "fulfilled").length;
  assert.ok(taken >= 4 && taken <= 5, `${taken} of 20 blocks`);
  await store.close();
});

test("a segment that cannot be compacted for lack of space stays, and a notice says so", async () => {
  const notices: string[] = [];
  let free = mebibyte;
  const at = folder();
  const store = await openSegmentStore(at, {
    fs: sized(() => free, mebibyte),
    segmentBytes: 100_000,
    onNotice: (sentence) => notices.push(sentence),
  });
  const blocks = samples(10, 5000);
  await store.put(blocks);
  await store.sync();
  await store.delete(blocks.slice(0, 7).map(({ cid }) => cid));
  free = 1000;
  await store.compact();
  assert.match(notices.join(), /00000001.car is not compacted: the disk has no room/);
  assert.deepEqual(await segmentsOf(at), ["00000001.car"]);
  free = mebibyte;
  await store.compact();
  assert.deepEqual(await segmentsOf(at), ["00000002.car"]);
  for (const { cid, bytes: content } of blocks.slice(7)) assert.deepEqual(await store.get(cid), content);
  await store.close();
});

test("segments are a small part of a small disk, and half a GiB on a large one", async () => {
  const of = (total: number) =>
    segmentLength(
      sized(() => 0, total),
      "",
    );
  assert.deepEqual(await Promise.all([mebibyte, 1024 * mebibyte, 2 ** 40].map(of)), [
    mebibyte,
    16 * mebibyte,
    512 * mebibyte,
  ]);
  assert.equal(await segmentLength({ ...diskFs, space: async () => undefined }, ""), 512 * mebibyte);
});
