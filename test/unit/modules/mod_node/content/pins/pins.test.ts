import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { collectGarbage } from "#node/content/pins/gc.ts";
import { Pins } from "#node/content/pins/pins.ts";
import { removeBlocks } from "#node/content/pins/remove_blocks.ts";
import { collectingHost } from "#node/content/pins/shared_gc.ts";
import { verifyPins } from "#node/content/pins/verify.ts";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { CidSet } from "#node/formats/cid/set.ts";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import type { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { makeBlock } from "#node/storage/blockstore/make_block.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { RetainedBlocks } from "#node/storage/blockstore/retained_blocks.ts";
import { openLmdbMetadata } from "#node/storage/metadata/lmdb.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";
import { files, TestVault } from "#test/unit/modules/mod_node/content/adder/support.ts";
import { as, dagPb, raw, samples } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

/** Adds files to a vault. Returns a function that finds CIDs by name. */
async function filled(...paths: string[]): Promise<[TestVault, (name: string) => CID]> {
  const vault = new TestVault();
  const found = new Map<string, CID>();
  for await (const { name, built } of vault.add(files(...paths), { pin: false })) if (built) found.set(name, built.cid);
  return [vault, (name) => found.get(name) as CID];
}

test("a block below a pin is found through that pin, and a pinned root through another pin", async () => {
  const [vault, cid] = await filled("d/e/a", "d/b", "loose");
  await vault.pins.keep([cid("d/e"), cid("d")]);
  const through = await vault.pins.rootsAbove([cid("d/e"), cid("d/e/a"), cid("d"), cid("loose")]);
  assert.equal(String(through.get(String(cid("d/e")))), String(cid("d")));
  assert.ok(through.has(String(cid("d/e/a"))));
  assert.ok(!through.has(String(cid("d"))));
  assert.ok(!through.has(String(cid("loose"))));
});

test("pins are not walked when no CIDs are given", async (t) => {
  const [vault, cid] = await filled("d/e/a");
  await vault.pins.keep([cid("d")]);
  const pages = t.mock.method(vault.pins, "pagesOfTexts");
  assert.equal((await vault.pins.rootsAbove([])).size, 0);
  assert.equal(pages.mock.callCount(), 0);
});

test("indirect pins are listed once each, without unwanted ones", async () => {
  const [vault, cid] = await filled("d/e/a", "d/e/same", "f/e/a");
  await vault.pins.keep([cid("d"), cid("d/e"), cid("f")]);
  const unwanted = new CidSet();
  for (const root of [cid("d"), cid("d/e"), cid("f")]) unwanted.add(root);
  const yielded = (await Array.fromAsync(vault.pins.indirect(unwanted))).map(String).sort();
  assert.deepEqual(yielded, [cid("d/e/a"), cid("d/e/same"), cid("f/e"), cid("f/e/a")].map(String).sort());
});

test("verification lists missing blocks for every pin above them", async () => {
  const [vault, cid] = await filled("d/e/a", "d/b", "f/b", "g/c");
  await vault.pins.keep([cid("d"), cid("d/e"), cid("g")]);
  await vault.blocks.store.delete([cid("d/e/a")]);
  const states = new Map<string, string[]>();
  for await (const { root, bad } of verifyPins(vault.blocks, vault.pins, undefined)) {
    states.set(
      String(root),
      bad.map((node) => `${node.cid} ${node.message}`),
    );
  }
  const missing = [`${cid("d/e/a")} merkledag: not found`];
  assert.deepEqual(states.get(String(cid("d"))), missing);
  assert.deepEqual(states.get(String(cid("d/e"))), missing);
  assert.deepEqual(states.get(String(cid("g"))), []);
});

test("blocks that nothing pins are removed, and each gets its own result in order", async () => {
  const [vault, cid] = await filled("d/a", "loose", "direct");
  await vault.pins.keep([cid("d")]);
  await vault.pins.add(cid("direct"), "direct");
  const requested = [cid("d"), cid("d/a"), cid("loose"), cid("loose"), cid("direct")];
  const results = await removeBlocks(vault.blocks, vault.pins, requested, { ignoreMissing: false });
  assert.deepEqual(
    results.map(({ fault }) => fault?.message),
    ["pinned: recursive", `pinned via ${cid("d")}`, undefined, "blockstore: block not found", "pinned: direct"],
  );
  assert.equal(await vault.blocks.has(cid("loose")), false);
  const again = await removeBlocks(vault.blocks, vault.pins, [cid("loose")], { ignoreMissing: true });
  assert.equal(again[0]?.fault, undefined);
});

test("a leaf that is stored only under another codec is stored again under the CID that the pin names", async () => {
  const vault = new TestVault();
  const bytes = encodePb({ data: Buffer.from("both a node and a leaf"), links: [] });
  const leaf = await makeBlock(bytes, { codec: raw, hash: sha256, length: -1 });
  const node = { cid: as(leaf.cid, dagPb), bytes };
  const root = await makeBlock(encodePb({ data: undefined, links: [{ name: "", size: 0, cid: leaf.cid }] }), {
    codec: undefined,
    hash: sha256,
    length: -1,
  });
  await vault.blocks.put([node, root]);
  await vault.pins.add(root.cid, "recursive", { offline: true });
  await removeBlocks(vault.blocks, vault.pins, [node.cid], { ignoreMissing: false });
  assert.deepEqual(await vault.blocks.find(leaf.cid), bytes);
});

test("a recursive pin that is added while a direct one is in progress stays recursive", async () => {
  const [vault, cid] = await filled("d/a");
  const { get } = vault.blocks.store;
  const reading = Promise.withResolvers<void>();
  const mayRead = Promise.withResolvers<void>();
  vault.blocks.store.get = async (requested) => {
    reading.resolve();
    await mayRead.promise;
    return get.call(vault.blocks.store, requested);
  };
  const direct = vault.pins.add(cid("d"), "direct");
  await reading.promise;
  vault.blocks.store.get = get;
  await vault.pins.add(cid("d"), "recursive");
  mayRead.resolve();
  await assert.rejects(direct, { message: `${cid("d")} already pinned recursively` });
  assert.equal(await vault.pins.mode(cid("d")), "recursive");
});

test("a pin that waits for its blocks delays neither a collection nor later callers", async () => {
  const [vault, cid] = await filled("d/a", "d/b", "stray");
  const lost = await vault.blocks.get(cid("d/a"));
  await vault.blocks.store.delete([cid("d/a")]);
  const requested = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<Uint8Array>();
  vault.blocks.source = {
    async fetch(wanted) {
      requested.resolve();
      const bytes = await arrived.promise;
      await vault.blocks.put([{ cid: wanted, bytes }]);
      return bytes;
    },
  };
  const pinning = vault.pins.add(cid("d"), "recursive");
  await requested.promise;
  const release = await vault.lock.acquireExclusive();
  await collectGarbage(vault.blocks, vault.pins, () => {});
  release();
  assert.equal(await vault.blocks.has(cid("stray")), false);
  arrived.resolve(lost);
  await pinning;
  for (const name of ["d", "d/a", "d/b"]) assert.ok(await vault.blocks.has(cid(name)), name);
});

test("collections reuse a few buffers for blocks that they read for their links only", async () => {
  const vault = new TestVault();
  // A file of one block that was added without raw leaves.
  const leaves = samples(40, 200_000).map(({ cid, bytes }) => ({ cid: as(cid, dagPb), bytes }));
  await vault.blocks.store.put(leaves);
  await vault.pins.keep(leaves.map(({ cid }) => cid));
  const found = vault.blocks.store.get.bind(vault.blocks.store);
  let used = new Set<ArrayBufferLike>();
  vault.blocks.store.get = async (cid: CID, buffers?: BufferPool) => {
    const bytes = await found(cid);
    const into = bytes && (buffers?.take(bytes.length) ?? new Uint8Array(bytes.length));
    if (bytes?.length === 200_000 && into) used.add(into.buffer);
    into?.set(bytes ?? []);
    return into;
  };
  await collectGarbage(vault.blocks, vault.pins, () => {});
  assert.ok(used.size > 0 && used.size <= 2, `${used.size} buffers`);
  assert.equal(await vault.blocks.store.has((leaves[0] as (typeof leaves)[0]).cid), true);
  used = new Set();
  const retained = new RetainedBlocks();
  const none = async () => [];
  const host = collectingHost({ pins: vault.pins, lock: vault.lock, roots: none, rootsInProgress: none });
  await host.mark(retained, (cid, buffers) => vault.blocks.store.get(cid, buffers), {});
  assert.ok(used.size > 0 && used.size <= 2, `${used.size} buffers across hosts`);
  assert.ok(leaves.every(({ cid }) => retained.has(cid)));
});

test("a block that a collection removes while a pin is being added is fetched again before the pin exists", async () => {
  const [vault, cid] = await filled("d/a");
  let fetched = 0;
  const bytes = await vault.blocks.get(cid("d/a"));
  vault.blocks.source = {
    async fetch(wanted) {
      fetched += 1;
      await vault.blocks.put([{ cid: wanted, bytes }]);
      return bytes;
    },
  };
  let reports = 0;
  await vault.pins.add(cid("d"), "recursive", {
    progress: () => {
      reports += 1;
      if (reports === 2)
        void vault.lock.acquireExclusive().then((release) => vault.blocks.store.delete([cid("d/a")]).then(release));
    },
  });
  assert.equal(fetched, 1);
  assert.ok(await vault.blocks.has(cid("d/a")));
});

test("an update to a missing root fails with its CID, and leaves the old pin", async () => {
  const [vault, cid] = await filled("was");
  await vault.pins.keep([cid("was")]);
  const [{ cid: missing }] = samples(1, 4) as [ReturnType<typeof samples>[number]];
  await assert.rejects(vault.pins.update(cid("was"), missing, true), {
    message: `get ${missing}: merkledag: not found`,
  });
  assert.deepEqual(await vault.pinned(), [String(cid("was"))]);
});

test("a release by the owner removes its pin, unless somebody else has requested the pin, too", async () => {
  const owner = "service";
  const [vault, cid] = await filled("alone", "kept", "added", "updated", "was", "before", "other", "direct");
  const { pins } = vault;
  const names = ["alone", "kept", "added", "updated", "other", "direct"];
  await pins.keep([cid("was"), cid("before")]);
  await pins.add(cid("direct"), "direct");
  for (const name of [...names, "before"]) await pins.add(cid(name), "recursive", { owner });
  await pins.add(cid("alone"), "recursive", { owner });
  await pins.keep([cid("kept")]);
  await pins.add(cid("added"), "recursive");
  await assert.rejects(pins.update(cid("was"), cid("updated"), true), /already recursively pinned/);
  await pins.add(cid("other"), "recursive", { owner: "another" });
  await pins.release(cid("before"), "another");
  for (const name of [...names, "before"]) await pins.release(cid(name), owner);
  assert.deepEqual(
    (await vault.pinned()).sort(),
    ["added", "before", "direct", "kept", "other", "updated", "was"].map((name) => String(cid(name))).sort(),
  );
});

test("a slow listing of pins does not stop the store from reusing space", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-pins-"));
  t.after(() => rm(folder, { recursive: true }));
  const metadata = await openLmdbMetadata(folder);
  t.after(() => metadata.close());
  const pins = new Pins(new BlockService(memoryBlocks()), metadata, new SharedLock());
  const cids = samples(5000, 4).map(({ cid }) => cid);
  await pins.keep(cids);
  const expected = new Set(cids.map(String));
  const seen: string[] = [];
  for await (const cid of pins.list("recursive")) {
    if (seen.push(String(cid)) > 1) continue;
    for (let round = 0; round < 100; round += 1) {
      await metadata.transaction((writer) => {
        for (let at = 0; at < 20; at += 1) writer.put(`other/${at}`, Buffer.alloc(2000, round));
      });
    }
  }
  assert.equal(seen.length, expected.size);
  assert.deepEqual(new Set(seen), expected);
  let bytes = 0;
  for (const name of await readdir(folder)) bytes += (await stat(join(folder, name))).size;
  assert.ok(bytes < 4 * 1024 * 1024, `${bytes} bytes`);
});
