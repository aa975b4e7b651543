import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { namespacePath } from "#node/content/mfs/path.ts";
import { writeFile } from "#node/content/mfs/write_file.ts";
import { collectGarbage, type NotRemoved, type Removed } from "#node/content/pins/gc.ts";
import { Pins } from "#node/content/pins/pins.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { failure } from "#node/util/errors.ts";
import { blockOf } from "#test/unit/modules/mod_node/network/bitswap/support.ts";
import { TestNamespace } from "./test_namespace.ts";

test("other calls continue while a block is fetched from a peer", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/d");
  await mfs.write("/d/f", "far");
  await mfs.files.commit({ whole: true });
  const cid = await mfs.cid("/d");
  const bytes = (await mfs.store.get(cid)) as Uint8Array;
  await mfs.store.delete([cid]);
  mfs.crash();
  const requested = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  mfs.blocks.source = {
    async fetch() {
      requested.resolve();
      await arrived.promise;
      return bytes;
    },
  };
  const reading = mfs.read("/d/f");
  await requested.promise;
  await mfs.write("/near", "near");
  assert.equal(await mfs.read("/near"), "near");
  arrived.resolve();
  assert.equal(await reading, "far");
});

test("a collection retains everything in the namespace, flushed or not, and removes the rest", async () => {
  const mfs = new TestNamespace();
  const pins = new Pins(mfs.blocks, mfs.metadata, mfs.lock);
  await mfs.mkdir("/d");
  for (const text of ["one", "two", "three"]) await mfs.write("/d/f", text, { truncate: true });
  await mfs.write("/d/loose", "x", { flush: false });
  const release = await mfs.lock.acquireExclusive();
  const partial = await mfs.files.roots();
  const before = (await Array.fromAsync(mfs.store.keys())).length;
  const removed: (Removed | NotRemoved)[] = [];
  await collectGarbage(mfs.blocks, pins, (result) => removed.push(result), { partial });
  release();
  assert.ok(removed.length > 0 && removed.every((result) => "removed" in result));
  assert.equal((await Array.fromAsync(mfs.store.keys())).length, before - removed.length);
  for (const again of [false, true]) {
    if (again) mfs.crash();
    assert.equal(await mfs.read("/d/f"), "three");
    assert.equal(await mfs.read("/d/loose"), "x");
  }
});

test("a client that writes slowly does not delay a collection, and loses nothing", async () => {
  const mfs = new TestNamespace();
  const pins = new Pins(mfs.blocks, mfs.metadata, mfs.lock);
  const collect = async () => {
    const release = await mfs.lock.acquireExclusive();
    const removed: (Removed | NotRemoved)[] = [];
    const partial = await mfs.files.roots();
    await collectGarbage(mfs.blocks, pins, (result) => removed.push(result), { partial });
    release();
    return removed.length;
  };
  const before = randomBytes(900_000);
  const after = randomBytes(6_000_000);
  await mfs.write("/f", before);
  await mfs.blocks.put([blockOf(randomBytes(100))]);
  const removed: number[] = [];
  const body = async () => {
    removed.push(await collect());
    return (async function* () {
      yield after.subarray(0, 300_000);
      removed.push(await collect());
      yield after.subarray(300_000, 5_200_000);
      removed.push(await collect());
      yield after.subarray(5_200_000);
      removed.push(await collect());
    })();
  };
  await writeFile(mfs.files, namespacePath("/f"), body, {
    ...{ flush: true, offset: 200_000, count: undefined, create: true, parents: false, truncate: false },
    ...{ rawLeaves: undefined, settings: undefined },
  });
  assert.ok((removed.shift() as number) > 0, "what nothing keeps");
  assert.deepEqual(removed, [0, 0, 0]);
  await collect();
  const whole = Buffer.concat([before.subarray(0, 200_000), after]);
  assert.ok(whole.equals(await mfs.bytes("/f")));
  assert.ok(whole.equals(await mfs.bytes("/f")));
});

test("calls fail while the disk is full, and succeed without any loss once there is room", async () => {
  const store = memoryBlocks();
  const mfs = new TestNamespace(store);
  await mfs.write("/kept", "kept");
  const { put, sync } = store;
  const full = async () => {
    throw failure("STORE_FULL", { path: "x", reason: "no space left" });
  };
  store.put = full;
  await assert.rejects(mfs.write("/f", Buffer.alloc(3_000_000)), /no space left/);
  await assert.rejects(mfs.mkdir("/d", { hash: "sha2-512" }), /no space left/);
  store.put = put;
  store.sync = full;
  await assert.rejects(mfs.mkdir("/e"), /no space left/);
  await assert.rejects(mfs.files.commit({ whole: true }), /no space left/);
  store.sync = sync;
  assert.equal(await mfs.read("/kept"), "kept");
  await mfs.write("/g", "after");
  const root = await mfs.cid();
  mfs.crash();
  assert.equal(String(await mfs.cid()), String(root));
  assert.equal(await mfs.read("/kept"), "kept");
  assert.equal(await mfs.read("/g"), "after");
});
