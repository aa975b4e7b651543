/** Copies a store while it is in use: the copy has the content at the time when copying began. */
import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { StoreSnapshot } from "#node/storage/blockstore/store.ts";
import { contents, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { folder } from "./workshop.ts";

const segmentBytes = 8000;

async function copied({ files }: StoreSnapshot): Promise<string> {
  const to = folder();
  await mkdir(to, { recursive: true });
  for await (const { name, length, read } of files) {
    const content = Buffer.concat(await Array.fromAsync(read(0)));
    assert.equal(content.length, length);
    await writeFile(join(to, name), content);
  }
  return to;
}

test("a snapshot has the blocks that were put before it, not later changes, even if its segments are removed", async () => {
  const at = folder();
  const store = await openSegmentStore(at, { segmentBytes });
  const blocks = samples(100, 300);
  await store.put(blocks.slice(0, 90));
  const holding = store.takeSnapshot();
  // The snapshot is taken at the time of the call.
  await store.put(blocks.slice(90));
  await store.delete(blocks.slice(0, 80).map(({ cid }) => cid));
  const taken = await holding;
  await store.compact();
  const left = (await readdir(at)).filter((name) => name.endsWith(".car"));
  const names = (await Array.fromAsync(taken.files)).map(({ name }) => name);
  assert.ok(
    names.some((name) => !left.includes(name)),
    "compaction has removed no byte of the snapshot",
  );
  const copy = await openSegmentStore(await copied(taken), { segmentBytes });
  const found = await contents(copy);
  assert.equal(found.size, 90);
  for (const { cid } of blocks.slice(0, 90)) assert.ok(await copy.has(cid));
  await taken.release();
  await copy.close();
  await store.close();
});

test("a snapshot includes blocks that are not written yet, and opens without a repair while others write", async () => {
  const store = await openSegmentStore(folder(), { segmentBytes });
  const blocks = samples(400, 300);
  let at = 0;
  const writing = (async () => {
    for (; at < blocks.length; at += 5) await store.put(blocks.slice(at, at + 5));
  })();
  for (let round = 0; round < 4; round += 1) {
    const before = blocks.slice(0, at);
    const taken = await store.takeSnapshot();
    const notices: string[] = [];
    const copy = await openSegmentStore(await copied(taken), { segmentBytes, onNotice: (text) => notices.push(text) });
    for (const { cid } of before) assert.ok(await copy.has(cid));
    assert.deepEqual(
      notices.filter((text) => !text.includes("index")),
      [],
    );
    await copy.close();
    await taken.release();
  }
  await writing;
  await store.close();
});

test("unchanged files have the same state", async () => {
  const store = await openSegmentStore(folder(), { segmentBytes });
  await store.put(samples(60, 300));
  const states = async () => {
    const taken = await store.takeSnapshot();
    await taken.release();
    return (await Array.fromAsync(taken.files)).map(({ state }) => state);
  };
  const before = await states();
  await store.put(samples(61, 300));
  const after = await states();
  assert.ok(before.length > 2);
  assert.deepEqual(after.slice(0, before.length - 1), before.slice(0, -1));
  assert.notDeepEqual(after, before);
  await store.close();
});
