import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { appendFile, cp, open, readdir, readFile, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openSegmentStore, type SegmentStore } from "#node/storage/blockstore/segments/store.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import {
  borders,
  segmentFile as car,
  made,
  reopened,
  torn,
  tornBlocks,
  tornDeletions,
} from "#test/endurance/crash/torn.ts";
import {
  as,
  contents,
  contentsOf,
  dagPb,
  legacy,
  sample,
  samples,
} from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { copyOf, dump, folder } from "./workshop.ts";

/** `npm run test:crash` tests every byte. */
test("a block with a torn section is not stored, and writing continues", async () => {
  assert.ok((await tornBlocks(borders)) > 12);
});

test("a deletion with a torn record did not happen", async () => {
  assert.ok((await tornDeletions(borders)) > 10);
});

test("a last section that does not match its CID is set aside, and zeros are cut off", async () => {
  const saved = samples(3);
  const { at, tail } = await torn(
    (store) => store.put(saved),
    (store) => store.put([sample(50)]),
  );
  const spoilt = Buffer.from(tail);
  spoilt[tail.length - 1] = (spoilt[tail.length - 1] as number) ^ 1;
  for (const end of [spoilt, Buffer.alloc(5000), Buffer.alloc(40_000, 0xff)]) {
    const copy = await copyOf(at);
    await appendFile(car(copy), end);
    const notices = await reopened(copy, async (store) => {
      assert.deepEqual(await contents(store), contentsOf(saved));
    });
    const what = `ended in an incomplete write: ${end.length} bytes without a whole block`;
    const where = end.some((byte) => byte !== 0) ? "are now in lost\\+found/" : "were zeros and were removed";
    assert.match(notices.join(), new RegExp(`${what} ${where}`));
    assert.equal((await stat(car(copy))).size, (await stat(car(at))).size);
  }
});

test("a segment that was just begun may be empty or truncated", async () => {
  const at = await made((store) => store.put(samples(3)));
  for (const length of [0, 1, 10, 26]) {
    const copy = await copyOf(at);
    const head = (await readFile(car(at))).subarray(0, length);
    await appendFile(car(copy, 2), head);
    await reopened(copy, async (store) => {
      assert.deepEqual(await contents(store), contentsOf(samples(3)));
      await store.put([sample(9)]);
    });
    await reopened(copy, async (store) => {
      assert.deepEqual(await contents(store), contentsOf([...samples(3), sample(9)]));
    });
  }
});

/** All kinds of changes to blocks, over many small segments. */
async function busyLife(store: SegmentStore): Promise<void> {
  const blocks = samples(300, 200);
  const forms = (from: number, to: number, codec: number): Block[] =>
    blocks.slice(from, to).map(({ cid, bytes }) => ({ cid: codec === 0 ? legacy(cid) : as(cid, codec), bytes }));
  const cids = (list: Block[]) => list.map(({ cid }) => cid);
  await store.put(blocks);
  await store.put(forms(0, 100, dagPb));
  await store.delete(cids(blocks.slice(50, 150)));
  await store.put(forms(90, 130, 0));
  await store.compact();
  await store.delete(cids(forms(60, 110, dagPb)));
  await store.put(blocks.slice(120, 140));
  await store.delete(cids(blocks.slice(200, 290)));
  await store.put(samples(100, 300, 1000));
  await store.compact();
  await store.delete(cids(forms(90, 100, 0)));
  await store.put(blocks.slice(210, 230));
  await store.delete(cids(samples(90, 300, 1000)));
}

test("a rebuilt index equals the original one", async () => {
  for (const segmentBytes of [4000, 1_000_000]) {
    for (const after of [undefined, (store: SegmentStore) => store.compact()]) {
      const at = folder();
      const store = await openSegmentStore(at, { segmentBytes });
      await busyLife(store);
      await after?.(store);
      const content = await contents(store);
      const { blocks } = await store.stat();
      await store.close();
      const copy = await copyOf(at, { index: false });
      const notices = await reopened(copy, async (rebuilt) => {
        assert.deepEqual(await contents(rebuilt), content);
        assert.equal((await rebuilt.stat()).blocks, blocks);
      });
      assert.match(notices.join(), /the index of the blocks is missing: rebuilding it from \d+ segments?/);
      assert.deepEqual(await dump(copy), await dump(at));
    }
  }
});

test("a deletion survives the loss of the index, however often segments are compacted", async () => {
  const at = folder();
  let store = await openSegmentStore(at, { segmentBytes: 3000 });
  const blocks = samples(60, 200);
  await store.put(blocks);
  for (let round = 0; round < 6; round += 1) {
    await store.delete(blocks.slice(round * 9, round * 9 + 9).map(({ cid }) => cid));
    await store.put(samples(5, 200, 500 + round * 5));
    if (round % 2 === 0) await store.compact();
    const expected = contentsOf([...blocks.slice(round * 9 + 9), ...samples(5 + round * 5, 200, 500)]);
    assert.deepEqual(await contents(store), expected);
    await store.close();
    await rm(join(at, "index"), { recursive: true });
    store = await openSegmentStore(at, { segmentBytes: 3000 });
    assert.deepEqual(await contents(store), expected);
  }
  await store.close();
});

test("an index that is damaged or contradicts the segments is rebuilt", async () => {
  const at = await made(busyLife, { segmentBytes: 4000 });
  const content = new Map<string, string>();
  await reopened(at, async (store) => {
    for (const [key, value] of await contents(store)) content.set(key, value);
  });
  const data = (copy: string) => join(copy, "index", "data.mdb");
  const overwrite = async (file: string, from: number, length: number) => {
    const handle = await open(file, "r+");
    await handle.write(Buffer.alloc(length, 0xa5), 0, length, from);
    await handle.close();
  };
  const older = await made((store) => store.put(samples(3)));
  const damages: Record<string, (copy: string) => Promise<unknown>> = {
    "cut in half": async (copy) => truncate(data(copy), (await stat(data(copy))).size / 2),
    empty: (copy) => truncate(data(copy), 0),
    "overwritten at the start": (copy) => overwrite(data(copy), 0, 16_384),
    "overwritten in the middle": async (copy) => overwrite(data(copy), 8192, (await stat(data(copy))).size - 8192),
    "of another store": async (copy) => {
      await rm(join(copy, "index"), { recursive: true });
      await cp(join(older, "index"), join(copy, "index"), { recursive: true, preserveTimestamps: true });
    },
  };
  for (const [name, damage] of Object.entries(damages)) {
    const copy = await copyOf(at);
    await damage(copy);
    const notices = await reopened(copy, async (store) => {
      assert.deepEqual(await contents(store), content, name);
    });
    assert.match(notices.join(), /rebuilding it from \d+ segments/, name);
  }
});

test("the blocks of other segments stay when a segment is lost", async () => {
  const blocks = samples(40, 200);
  const at = await made((store) => store.put(blocks), { segmentBytes: 3000 });
  assert.ok((await readdir(at)).length > 3);
  await rm(car(at, 2));
  const notices = await reopened(at, async (store) => {
    const content = await contents(store);
    assert.ok(content.size > 20 && content.size < 40);
    for (const [key, value] of contentsOf(blocks)) assert.ok(!content.has(key) || content.get(key) === value);
    assert.equal((await store.stat()).blocks, content.size);
  });
  assert.match(notices.join(), /contains a missing segment \(00000002.car\): rebuilding it/);
});

test("acknowledged blocks survive kill -9", async () => {
  for (const rounds of [15, 40]) {
    const at = folder();
    const child = fork(fileURLToPath(new URL("killed.ts", import.meta.url)), [at], {
      execArgv: ["--conditions=source"],
    });
    const acknowledged = { put: new Set<number>(), deleted: new Set<number>() };
    child.on("message", ({ put, deleted }: { put: number[]; deleted: number[] }) => {
      for (const seed of put) acknowledged.put.add(seed);
      for (const seed of deleted) acknowledged.deleted.add(seed);
      if (acknowledged.put.size >= rounds * 8) child.kill("SIGKILL");
    });
    await once(child, "exit");
    for (const index of [true, false]) {
      await reopened(await copyOf(at, { index }), async (store) => {
        for (const seed of acknowledged.put) {
          if (seed % 10 === 0) continue;
          assert.deepEqual(await store.get(sample(seed, 3000).cid), sample(seed, 3000).bytes);
        }
        for (const seed of acknowledged.deleted) assert.equal(await store.has(sample(seed, 3000).cid), false);
        for await (const cid of store.keys()) assert.equal(await store.check(cid), true);
      });
    }
  }
});
