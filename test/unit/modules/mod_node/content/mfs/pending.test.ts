import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { collectGarbage, type NotRemoved, type Removed } from "#node/content/pins/gc.ts";
import { Pins } from "#node/content/pins/pins.ts";
import { createNode, memoryStores } from "#node/index.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { BlockStore } from "#node/storage/blockstore/store.ts";
import { failure } from "#node/util/errors.ts";
import { Place } from "./place.ts";

/** The CIDs of a place with the same content. */
async function foreseen(fill: (place: Place) => Promise<unknown>, path: string): Promise<CID> {
  const twin = new Place();
  await fill(twin);
  return twin.cid(path);
}

test("a directory that a change was answered for is there for every reader, without anybody asking for its CID", async () => {
  const fill = async (place: Place) => {
    await place.mkdir("/a/b", { parents: true });
    await place.write("/a/f", "content");
  };
  const readers: Record<string, (place: Place, cid: CID) => Promise<unknown>> = {
    find: (place, cid) => place.blocks.find(cid),
    get: (place, cid) => place.blocks.get(cid),
    has: (place, cid) => place.blocks.has(cid),
    size: (place, cid) => place.blocks.size(cid),
    pin: (place, cid) => new Pins(place.blocks, place.metadata, place.lock).add(cid, "recursive").then(() => true),
  };
  for (const [name, read] of Object.entries(readers)) {
    for (const crash of [false, true]) {
      for (const path of ["/", "/a"]) {
        const place = new Place();
        await fill(place);
        if (crash) place.crash();
        assert.ok(await read(place, await foreseen(fill, path)), `${name} of ${path}`);
      }
    }
  }
});

test("a node lists all its blocks, those of changed directories too", async () => {
  const repo = await mkdtemp(join(tmpdir(), "modhost-pending-"));
  const node = await createNode({ repo, offline: true, stores: async () => memoryStores() });
  try {
    await node.files.mkdir("/a/b", { parents: true });
    const root = await foreseen((place) => place.mkdir("/a/b", { parents: true }), "/");
    const listed = (await Array.fromAsync(node.refs.local())).map(({ ref }) => ref);
    assert.ok(listed.includes(root.toString()), listed.join());
  } finally {
    await node.stop();
    await rm(repo, { recursive: true, force: true });
  }
});

test("a block that nobody has costs a changed tree one look", async () => {
  const place = new Place();
  await place.mkdir("/a");
  let puts = 0;
  const { put } = place.store;
  place.store.put = async (...given) => {
    puts += 1;
    return put.apply(place.store, given);
  };
  const absent = await foreseen((twin) => twin.write("/other", "x"), "/");
  for (let count = 0; count < 50; count += 1) assert.equal(await place.blocks.find(absent), undefined);
  assert.equal(puts, 1);
});

/** Takes nothing new once it is full, except what upkeep needs. */
function smallDisk(): { readonly store: BlockStore; fill: (upkeep?: boolean) => void } {
  const store = memoryBlocks();
  const { put } = store;
  let isFull = false;
  let takesUpkeep = true;
  store.put = async (blocks, options) => {
    const taken = !isFull || (takesUpkeep && options?.upkeep === true);
    for (const { cid } of blocks) {
      if (!taken && !(await store.has(cid))) throw failure("STORE_FULL", { path: "here", reason: "the test says so" });
    }
    return put.call(store, blocks, options);
  };
  return {
    store,
    fill(upkeep = true) {
      isFull = true;
      takesUpkeep = upkeep;
    },
  };
}

async function collected(place: Place): Promise<(Removed | NotRemoved)[]> {
  const told: (Removed | NotRemoved)[] = [];
  const release = await place.lock.acquireExclusive();
  const pins = new Pins(place.blocks, place.metadata, place.lock);
  await collectGarbage(place.blocks, pins, (each) => told.push(each), { partial: await place.files.roots() });
  release();
  return told;
}

for (const upkeep of [true, false]) {
  const what = upkeep ? "with room for upkeep" : "without a byte left";
  test(`on a full disk ${what} files are read and removed, and garbage is collected`, async () => {
    const disk = smallDisk();
    const place = new Place(disk.store);
    await place.write("/kept/f", "content", { parents: true });
    await place.write("/gone", "garbage");
    await place.cid();
    const file = await place.cid("/kept/f");
    disk.fill(upkeep);
    await place.cp(file, "/loose", false);
    await place.mv("/kept/f", "/kept/g");
    await place.rm("/gone");
    const root = await place.cid();
    assert.deepEqual(await place.ls("/"), ["kept/", "loose"]);
    assert.deepEqual(await place.ls("/kept"), ["g"]);
    assert.equal(await place.read("/kept/g"), "content");
    assert.ok(await place.blocks.find(root));
    const told = await collected(place);
    assert.deepEqual(
      told.filter((each) => "error" in each),
      [],
    );
    assert.ok(told.length > 0, "something was removed");
    assert.equal(await place.read("/loose"), "content");
    assert.equal(await place.read("/kept/g"), "content");
    place.crash();
    assert.equal(await place.read("/kept/g"), "content");
    assert.equal((await place.stat("/kept")).kind, "directory");
    await assert.rejects(place.write("/new", "more"), { code: "STORE_FULL" });
    if (upkeep) return;
    // A pin would outlive what is in memory only.
    const kept = await place.cid("/kept");
    await assert.rejects(new Pins(place.blocks, place.metadata, place.lock).add(kept, "recursive"), {
      code: "STORE_FULL",
    });
  });
}
