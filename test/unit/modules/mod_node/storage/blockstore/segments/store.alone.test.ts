import assert from "node:assert/strict";
import { createReadStream } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { CarBlockIterator, CarReader } from "@ipld/car";
import { CID } from "multiformats/cid";
import { create } from "multiformats/hashes/digest";
import { openSegmentStore } from "#node/storage/blockstore/segments/store.ts";
import { blockContract } from "#test/unit/modules/mod_node/storage/blockstore/contract.ts";
import {
  as,
  contents,
  contentsOf,
  dagPb,
  legacy,
  noise,
  sample,
  samples,
} from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";
import { copyOf, folder, systemError, watched } from "./workshop.ts";

blockContract("segments", () => openSegmentStore(folder()));
blockContract("small segments", () => openSegmentStore(folder(), { segmentBytes: 20_000, bufferedBytes: 5000 }));

test("blocks that were put exist when the store is opened again", async () => {
  const at = folder();
  const blocks = [...samples(50), sample(99, 400_000)];
  const first = await openSegmentStore(at, { segmentBytes: 3000 });
  await first.put(blocks);
  const before = await first.stat();
  await first.close();
  const notices: string[] = [];
  const second = await openSegmentStore(at, { onNotice: (text) => notices.push(text) });
  assert.deepEqual(await contents(second), contentsOf(blocks));
  assert.equal((await second.stat()).blocks, before.blocks);
  await second.close();
  assert.deepEqual(notices, []);
});

test("consecutive checks of blocks use the same buffers", async (t) => {
  const store = await openSegmentStore(folder());
  const blocks = samples(40, 200_000);
  await store.put(blocks);
  await store.sync();
  const large = (...mocks: { mock: { calls: readonly { arguments: unknown[] }[] } }[]) =>
    mocks.flatMap(({ mock }) => mock.calls).filter((call) => (call.arguments[0] as number) >= 200_000).length;
  const apart = t.mock.method(Buffer, "allocUnsafe");
  const pooled = t.mock.method(Buffer, "allocUnsafeSlow");
  for (const { cid } of blocks) assert.equal(await store.check(cid), true);
  assert.ok(large(apart, pooled) <= 2, `${large(apart, pooled)} buffers`);
  await store.close();
});

test("a segment is a CAR file that any reader can read, including its records", async () => {
  const at = folder();
  const store = await openSegmentStore(at);
  const blocks = [...samples(20, 2000), sample(77, 0)];
  const [first, second] = blocks as [(typeof blocks)[0], (typeof blocks)[0]];
  await store.put(blocks);
  await store.put([{ cid: as(first.cid, dagPb), bytes: first.bytes }]);
  await store.put([{ cid: legacy(sample(5000).cid), bytes: sample(5000).bytes }]);
  await store.delete([second.cid]);
  await store.close();

  const [name, ...others] = (await readdir(at)).filter((entry) => entry.endsWith(".car"));
  assert.deepEqual(others, []);
  const car = join(at, name as string);
  const stored = [...blocks, { cid: legacy(sample(5000).cid), bytes: sample(5000).bytes }];
  const read = [];
  for await (const block of await CarBlockIterator.fromIterable(createReadStream(car))) read.push(block);
  const isRecord = ({ cid }: { cid: { multihash: { code: number } } }) => cid.multihash.code === 0;
  assert.deepEqual(contentsOf(read.filter((block) => !isRecord(block))), contentsOf(stored));
  const records = read.filter(isRecord);
  assert.equal(records.length, 2);
  for (const { cid, bytes } of records) assert.deepEqual(bytes, cid.multihash.digest);

  const reader = await CarReader.fromBytes(await readFile(car));
  assert.equal(reader.version, 1);
  assert.deepEqual((await reader.getRoots()).map(String), ["bafkqaaa"]);
});

test("puts without sync are visible, and wait for the disk when there are too many", async () => {
  let release = () => {};
  let writing = 0;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const store = await openSegmentStore(folder(), {
    bufferedBytes: 100_000,
    fs: watched(async (operation) => {
      if (operation === "write" && writing++ > 0) await gate;
    }),
  });
  const blocks = samples(12, 20_000);
  let put = 0;
  const done = (async () => {
    for (const block of blocks) {
      await store.put([block]);
      put += 1;
    }
  })();
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(put, 5, "the buffer accepts this number of blocks");
  assert.deepEqual(await store.get(sample(0, 20_000).cid), sample(0, 20_000).bytes);
  release();
  await done;
  await store.sync();
  assert.deepEqual(await contents(store), contentsOf(blocks));
  await store.close();
});

test("concurrent syncs share one flush", async () => {
  let flushes = 0;
  const store = await openSegmentStore(folder(), {
    fs: watched((operation) => {
      if (operation === "sync") flushes += 1;
    }),
  });
  flushes = 0;
  await Promise.all(samples(100).map((block) => store.put([block]).then(() => store.sync())));
  assert.ok(flushes <= 2, `${flushes} flushes`);
  flushes = 0;
  await store.sync();
  assert.equal(flushes, 0, "nothing was put");
  await store.close();
});

test("syncs in consecutive ticks share one write and one flush", async (t) => {
  t.mock.method(performance, "now", () => 0);
  const done: string[] = [];
  const store = await openSegmentStore(folder(), { fs: watched((operation) => done.push(operation)) });
  done.length = 0;
  const syncs: Promise<void>[] = [];
  for (const block of samples(10)) {
    await store.put([block]);
    syncs.push(store.sync());
    await nextTurn();
  }
  await Promise.all(syncs);
  assert.deepEqual(done, ["write", "sync"]);
  await store.close();
});

test("a sync waits for the disk: synced blocks survive a crash", async () => {
  const at = folder();
  const store = await openSegmentStore(at, { segmentBytes: 5000 });
  for (let round = 0; round < 5; round += 1) {
    await store.put(samples(20, 100, round * 20));
    await store.sync();
    const crashed = await openSegmentStore(await copyOf(at));
    assert.deepEqual(await contents(crashed), contentsOf(samples(20 * (round + 1))));
    await crashed.close();
  }
  await store.close();
});

test("a damaged block is reported when reads are verified, and by check", async () => {
  const at = folder();
  const blocks = samples(3, 1000);
  const [, damaged] = blocks as [(typeof blocks)[0], (typeof blocks)[0]];
  const first = await openSegmentStore(at);
  await first.put(blocks);
  await first.close();
  const car = join(at, "00000001.car");
  const bytes = await readFile(car);
  bytes.fill(0, bytes.indexOf(damaged.bytes) + 500, bytes.indexOf(damaged.bytes) + 510);
  await writeFile(car, bytes);
  const store = await openSegmentStore(at, { verifyOnRead: true });
  for (const block of blocks) {
    if (block === damaged) {
      assert.equal(await store.check(block.cid), false);
      await assert.rejects(store.get(block.cid), (error: Error & { code?: string }) => {
        return error.code === "BLOCK_CORRUPT" && error.message.includes(block.cid.toString());
      });
    } else {
      assert.equal(await store.check(block.cid), true);
      assert.deepEqual(await store.get(block.cid), block.bytes);
    }
  }
  await store.close();
});

test("an identity CID, and a CID too long for a key, are refused", async () => {
  const store = await openSegmentStore(folder());
  for (const digest of [create(0, noise(10, 1)), create(0x12, noise(2000, 1))]) {
    const cid = CID.createV1(0x55, digest);
    await assert.rejects(store.put([{ cid, bytes: noise(10, 1) }]), /cannot be stored/);
    assert.equal(await store.get(cid), undefined);
  }
  await store.close();
});

test("an error names a folder that cannot be written", async () => {
  const fs = watched((operation) => {
    if (operation === "list") throw systemError("EROFS");
  });
  await assert.rejects(openSegmentStore(folder(), { fs }), {
    code: "STORE_FULL",
    message: /^the block store cannot write to .*: EROFS: it was put there by the test; free space/,
  });
});
