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
import { TestNamespace } from "./test_namespace.ts";

/** Returns the CID in another namespace with the same content. */
async function foreseen(fill: (mfs: TestNamespace) => Promise<unknown>, path: string): Promise<CID> {
  const twin = new TestNamespace();
  await fill(twin);
  return twin.cid(path);
}

test("a changed directory exists for every reader before its CID was requested", async () => {
  const fill = async (mfs: TestNamespace) => {
    await mfs.mkdir("/a/b", { parents: true });
    await mfs.write("/a/f", "content");
  };
  const readers: Record<string, (mfs: TestNamespace, cid: CID) => Promise<unknown>> = {
    find: (mfs, cid) => mfs.blocks.find(cid),
    get: (mfs, cid) => mfs.blocks.get(cid),
    has: (mfs, cid) => mfs.blocks.has(cid),
    size: (mfs, cid) => mfs.blocks.size(cid),
    pin: (mfs, cid) => new Pins(mfs.blocks, mfs.metadata, mfs.lock).add(cid, "recursive").then(() => true),
  };
  for (const [name, read] of Object.entries(readers)) {
    for (const crash of [false, true]) {
      for (const path of ["/", "/a"]) {
        const mfs = new TestNamespace();
        await fill(mfs);
        if (crash) mfs.crash();
        assert.ok(await read(mfs, await foreseen(fill, path)), `${name} of ${path}`);
      }
    }
  }
});

test("a node lists all its blocks, including those of changed directories", async () => {
  const repo = await mkdtemp(join(tmpdir(), "modhost-pending-"));
  const node = await createNode({ repo, offline: true, stores: async () => memoryStores() });
  try {
    await node.files.mkdir("/a/b", { parents: true });
    const root = await foreseen((mfs) => mfs.mkdir("/a/b", { parents: true }), "/");
    const listed = (await Array.fromAsync(node.refs.local())).map(({ ref }) => ref);
    assert.ok(listed.includes(root.toString()), listed.join());
  } finally {
    await node.stop();
    await rm(repo, { recursive: true, force: true });
  }
});

test("searches for a missing block store a changed tree only once", async () => {
  const mfs = new TestNamespace();
  await mfs.mkdir("/a");
  let puts = 0;
  const { put } = mfs.store;
  mfs.store.put = async (...given) => {
    puts += 1;
    return put.apply(mfs.store, given);
  };
  const absent = await foreseen((twin) => twin.write("/other", "x"), "/");
  for (let count = 0; count < 50; count += 1) assert.equal(await mfs.blocks.find(absent), undefined);
  assert.equal(puts, 1);
});

/** A disk that rejects new blocks once it is full, except for upkeep. */
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

async function collected(mfs: TestNamespace): Promise<(Removed | NotRemoved)[]> {
  const results: (Removed | NotRemoved)[] = [];
  const release = await mfs.lock.acquireExclusive();
  const pins = new Pins(mfs.blocks, mfs.metadata, mfs.lock);
  await collectGarbage(mfs.blocks, pins, (each) => results.push(each), { partial: await mfs.files.roots() });
  release();
  return results;
}

for (const upkeep of [true, false]) {
  const what = upkeep ? "with room for upkeep" : "without a byte left";
  test(`files can be read and removed, and garbage collected, on a full disk ${what}`, async () => {
    const disk = smallDisk();
    const mfs = new TestNamespace(disk.store);
    await mfs.write("/kept/f", "content", { parents: true });
    await mfs.write("/gone", "garbage");
    await mfs.cid();
    const file = await mfs.cid("/kept/f");
    disk.fill(upkeep);
    await mfs.cp(file, "/loose", false);
    await mfs.mv("/kept/f", "/kept/g");
    await mfs.rm("/gone");
    const root = await mfs.cid();
    assert.deepEqual(await mfs.ls("/"), ["kept/", "loose"]);
    assert.deepEqual(await mfs.ls("/kept"), ["g"]);
    assert.equal(await mfs.read("/kept/g"), "content");
    assert.ok(await mfs.blocks.find(root));
    const results = await collected(mfs);
    assert.deepEqual(
      results.filter((each) => "error" in each),
      [],
    );
    assert.ok(results.length > 0, "something was removed");
    assert.equal(await mfs.read("/loose"), "content");
    assert.equal(await mfs.read("/kept/g"), "content");
    mfs.crash();
    assert.equal(await mfs.read("/kept/g"), "content");
    assert.equal((await mfs.stat("/kept")).kind, "directory");
    await assert.rejects(mfs.write("/new", "more"), { code: "STORE_FULL" });
    if (upkeep) return;
    // A pin would outlive blocks that are in memory only.
    const directory = await mfs.cid("/kept");
    await assert.rejects(new Pins(mfs.blocks, mfs.metadata, mfs.lock).add(directory, "recursive"), {
      code: "STORE_FULL",
    });
  });
}
