/** A store that is copied while it goes on: the copy is what there was when the copying began. */
import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { HeldFiles } from "#node/storage/blockstore/store.ts";
import { contents, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { folder } from "./workshop.ts";

const segmentBytes = 8000;

async function copied({ files }: HeldFiles): Promise<string> {
  const to = folder();
  await mkdir(to, { recursive: true });
  for await (const { name, length, read } of files) {
    const content = Buffer.concat(await Array.fromAsync(read(0)));
    assert.equal(content.length, length);
    await writeFile(join(to, name), content);
  }
  return to;
}

test("a copy has what was put before, not what came or went later, though its segments were removed", async () => {
  const at = folder();
  const store = await openSegmentStore(at, { segmentBytes });
  const blocks = samples(100, 300);
  await store.put(blocks.slice(0, 90));
  const holding = store.hold();
  // The moment is that of the call.
  await store.put(blocks.slice(90));
  await store.delete(blocks.slice(0, 80).map(({ cid }) => cid));
  const held = await holding;
  await store.compact();
  const left = (await readdir(at)).filter((name) => name.endsWith(".car"));
  const names = (await Array.fromAsync(held.files)).map(({ name }) => name);
  assert.ok(
    names.some((name) => !left.includes(name)),
    "compaction has removed nothing of it",
  );
  const copy = await openSegmentStore(await copied(held), { segmentBytes });
  const found = await contents(copy);
  assert.equal(found.size, 90);
  for (const { cid } of blocks.slice(0, 90)) assert.ok(await copy.has(cid));
  await held.release();
  await copy.close();
  await store.close();
});

test("blocks that were put and not written yet are in it, and a copy while others write opens without a repair", async () => {
  const store = await openSegmentStore(folder(), { segmentBytes });
  const blocks = samples(400, 300);
  let at = 0;
  const writing = (async () => {
    for (; at < blocks.length; at += 5) await store.put(blocks.slice(at, at + 5));
  })();
  for (let round = 0; round < 4; round += 1) {
    const before = blocks.slice(0, at);
    const held = await store.hold();
    const notices: string[] = [];
    const copy = await openSegmentStore(await copied(held), { segmentBytes, onNotice: (text) => notices.push(text) });
    for (const { cid } of before) assert.ok(await copy.has(cid));
    assert.deepEqual(
      notices.filter((text) => !text.includes("index")),
      [],
    );
    await copy.close();
    await held.release();
  }
  await writing;
  await store.close();
});

test("what has not changed has the same state", async () => {
  const store = await openSegmentStore(folder(), { segmentBytes });
  await store.put(samples(60, 300));
  const states = async () => {
    const held = await store.hold();
    await held.release();
    return (await Array.fromAsync(held.files)).map(({ state }) => state);
  };
  const before = await states();
  await store.put(samples(61, 300));
  const after = await states();
  assert.ok(before.length > 2);
  assert.deepEqual(after.slice(0, before.length - 1), before.slice(0, -1));
  assert.notDeepEqual(after, before);
  await store.close();
});
