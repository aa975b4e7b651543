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
import { Place } from "./place.ts";

test("a block from elsewhere is fetched while others go on", async () => {
  const place = new Place();
  await place.mkdir("/d");
  await place.write("/d/f", "far");
  await place.files.commit({ whole: true });
  const cid = await place.cid("/d");
  const bytes = (await place.store.get(cid)) as Uint8Array;
  await place.store.delete([cid]);
  place.crash();
  const asked = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  place.blocks.source = {
    async fetch() {
      asked.resolve();
      await arrived.promise;
      return bytes;
    },
  };
  const reading = place.read("/d/f");
  await asked.promise;
  await place.write("/near", "near");
  assert.equal(await place.read("/near"), "near");
  arrived.resolve();
  assert.equal(await reading, "far");
});

test("collection keeps all that is in the namespace, flushed or not, and takes the rest", async () => {
  const place = new Place();
  const pins = new Pins(place.blocks, place.metadata, place.lock);
  await place.mkdir("/d");
  for (const text of ["one", "two", "three"]) await place.write("/d/f", text, { truncate: true });
  await place.write("/d/loose", "x", { flush: false });
  const release = await place.lock.acquireExclusive();
  const partial = await place.files.roots();
  const before = (await Array.fromAsync(place.store.keys())).length;
  const removed: (Removed | NotRemoved)[] = [];
  await collectGarbage(place.blocks, pins, (result) => removed.push(result), { partial });
  release();
  assert.ok(removed.length > 0 && removed.every((result) => "removed" in result));
  assert.equal((await Array.fromAsync(place.store.keys())).length, before - removed.length);
  for (const again of [false, true]) {
    if (again) place.crash();
    assert.equal(await place.read("/d/f"), "three");
    assert.equal(await place.read("/d/loose"), "x");
  }
});

test("a client that takes its time to write keeps no collection waiting, and loses nothing", async () => {
  const place = new Place();
  const pins = new Pins(place.blocks, place.metadata, place.lock);
  const collect = async () => {
    const release = await place.lock.acquireExclusive();
    const removed: (Removed | NotRemoved)[] = [];
    const partial = await place.files.roots();
    await collectGarbage(place.blocks, pins, (result) => removed.push(result), { partial });
    release();
    return removed.length;
  };
  const before = randomBytes(900_000);
  const after = randomBytes(6_000_000);
  await place.write("/f", before);
  await place.blocks.put([blockOf(randomBytes(100))]);
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
  await writeFile(place.files, namespacePath("/f"), body, {
    ...{ flush: true, offset: 200_000, count: undefined, create: true, parents: false, truncate: false },
    ...{ rawLeaves: undefined, settings: undefined },
  });
  assert.ok((removed.shift() as number) > 0, "what nothing keeps");
  assert.deepEqual(removed, [0, 0, 0]);
  await collect();
  const whole = Buffer.concat([before.subarray(0, 200_000), after]);
  assert.ok(whole.equals(await place.bytes("/f")));
  assert.ok(whole.equals(await place.bytes("/f")));
});

test("a disk that is full fails the call; once there is room, all goes on and nothing is lost", async () => {
  const store = memoryBlocks();
  const place = new Place(store);
  await place.write("/kept", "kept");
  const { put, sync } = store;
  const full = async () => {
    throw failure("STORE_FULL", { path: "x", reason: "no space left" });
  };
  store.put = full;
  await assert.rejects(place.write("/f", Buffer.alloc(3_000_000)), /no space left/);
  await assert.rejects(place.mkdir("/d", { hash: "sha2-512" }), /no space left/);
  store.put = put;
  store.sync = full;
  await assert.rejects(place.mkdir("/e"), /no space left/);
  await assert.rejects(place.files.commit({ whole: true }), /no space left/);
  store.sync = sync;
  assert.equal(await place.read("/kept"), "kept");
  await place.write("/g", "after");
  const root = await place.cid();
  place.crash();
  assert.equal(String(await place.cid()), String(root));
  assert.equal(await place.read("/kept"), "kept");
  assert.equal(await place.read("/g"), "after");
});
