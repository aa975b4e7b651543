/** Merging of segments, its leftovers, and finding them. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Block } from "#node/storage/blockstore/store.ts";
import { carKey, listKey, segmentId } from "#node/storage/shared/segments/names.ts";
import { failure } from "#node/util/errors.ts";
import { contents, contentsOf, samples } from "../../blockstore/samples.ts";
import { type Host, SharedStore } from "./hosts.ts";

/** Puts each block in its own segment. */
async function inSegments({ blocks: store }: Host, blocks: readonly Block[]): Promise<void> {
  for (const block of blocks) {
    await store.put([block]);
    await store.sync();
  }
}

async function twoHosts(t: TestContext, options: Parameters<SharedStore["open"]>[0] = {}) {
  const store = new SharedStore();
  const one = await store.open(options);
  const other = await store.open(options);
  t.after(() => Promise.allSettled([one.close(), other.close()]));
  return { store, one, other };
}

const faults = ({ blocks }: Host) => Array.fromAsync(blocks.upkeep.verify());

test("small segments are merged on one host at a time, and the old ones are deleted after the grace period", async (t) => {
  const { store, one, other } = await twoHosts(t, { graceMs: 1000 });
  let now = 0;
  store.log.clock = () => now;
  const blocks = samples(20, 300);
  await inSegments(one, blocks.slice(0, 10));
  await inSegments(other, blocks.slice(10));
  assert.equal((await one.blocks.upkeep.metrics()).segments, 20);
  await Promise.all([one.blocks.compact(), other.blocks.compact()]);
  for (const host of [one, other]) {
    assert.deepEqual(await contents(host.blocks), contentsOf(blocks));
    assert.equal((await host.blocks.upkeep.metrics()).segments, 1);
  }
  // A host that does not know of the merge can still read.
  assert.equal(store.contents.size, 21);
  await other.blocks.compact();
  assert.equal(store.contents.size, 21);
  now = 1000;
  await other.blocks.compact();
  assert.equal(store.contents.size, 1);
  assert.deepEqual(await contents(other.blocks), contentsOf(blocks));
  assert.deepEqual(await faults(one), []);
  // There is nothing more to merge.
  const { requests } = one.objects.metrics.put;
  await one.blocks.compact();
  assert.equal(one.objects.metrics.put.requests, requests);
});

test("mostly dead segments are rewritten, dead ones are dropped, and a new host sees the same", async (t) => {
  const { store, one, other } = await twoHosts(t, { graceMs: 0 });
  const blocks = samples(18, 10_000);
  await one.blocks.put(blocks);
  await one.blocks.sync();
  const left = blocks.filter((_, at) => at >= 6 && at % 3 === 0);
  await other.blocks.delete(blocks.filter((block) => !left.includes(block)).map(({ cid }) => cid));
  const before = await one.blocks.stat();
  await one.blocks.compact();
  assert.equal((await one.blocks.upkeep.metrics()).segments, 1);
  assert.ok((await one.blocks.stat()).bytes < before.bytes / 3);
  assert.equal(store.contents.size, 1);
  store.log.trim();
  const third = await store.open();
  t.after(() => third.close());
  for (const host of [one, other, third]) assert.deepEqual(await contents(host.blocks), contentsOf(left));
  // Chunks that were read are cached in the background, so their number differs from run to run.
  const [seen, expected] = await Promise.all([third, other].map(({ blocks }) => blocks.upkeep.metrics()));
  assert.deepEqual({ ...seen, cached: 0 }, { ...expected, cached: 0 });
  assert.deepEqual(await faults(third), []);
});

test("a block that is removed while its segment is merged does not come back", async (t) => {
  const { store, one, other } = await twoHosts(t, { graceMs: 0 });
  const blocks = samples(20, 300);
  await inSegments(one, blocks);
  const [gone, ...left] = blocks as [Block, ...Block[]];
  let isBetween = true;
  one.objects.faults = {
    async after(kind) {
      if (kind !== "put" || !isBetween) return;
      isBetween = false;
      await other.blocks.delete([gone.cid]);
    },
  };
  await one.blocks.compact();
  const count = store.contents.size;
  assert.equal((await one.blocks.upkeep.metrics()).segments, 20);
  await one.blocks.compact();
  assert.equal((await one.blocks.upkeep.metrics()).segments, 1);
  assert.ok(store.contents.size < count);
  store.log.trim();
  const third = await store.open();
  t.after(() => third.close());
  for (const host of [one, other, third]) assert.deepEqual(await contents(host.blocks), contentsOf(left));
});

test("a host that ends between upload and commit leaves orphans, which another host finds when the session is over", async (t) => {
  const { store, one, other } = await twoHosts(t);
  const blocks = samples(16, 300);
  await inSegments(one, blocks);
  store.log.onStep = (step, session) => {
    if (step === "append" && session === one.log.session && store.contents.size > 16) {
      throw failure("STORE_UNAVAILABLE", { reason: "it ended" });
    }
  };
  await assert.rejects(one.blocks.compact(), { code: "STORE_UNAVAILABLE" });
  await one.blocks.put(samples(1, 300, 99));
  await assert.rejects(one.blocks.sync(), { code: "STORE_UNAVAILABLE" });
  assert.equal(store.contents.size, 18);
  // The host may still commit it.
  assert.deepEqual(await other.blocks.upkeep.orphans(), []);
  store.log.endSession(one.log.session);
  assert.equal((await other.blocks.upkeep.orphans()).length, 2);
  let isOver = (_key: string): boolean => assert.fail();
  other.objects.abandonUploads = async (given) => {
    isOver = given;
    return 0;
  };
  assert.equal((await other.blocks.upkeep.deleteOrphans()).length, 2);
  // Uploads without an owner are aborted as well, but not those of hosts that live or start now.
  const sessions = [one.log.session, other.log.session, other.log.session + 1];
  assert.deepEqual(
    sessions.map((session) => isOver(carKey(segmentId({ session, number: 1 })))),
    [true, false, false],
  );
  assert.equal(isOver(listKey(segmentId({ session: one.log.session, number: 2 }))), true);
  assert.equal(isOver("lists/x.cids"), false);
  assert.equal(store.contents.size, 16);
  assert.deepEqual(await contents(other.blocks), contentsOf(blocks));
  assert.deepEqual(await faults(other), []);
});

test("a damaged segment is reported and stays, while the others are merged", async (t) => {
  const notices: string[] = [];
  const { store, one, other } = await twoHosts(t, { graceMs: 0 });
  const blocks = samples(17, 300);
  await inSegments(one, blocks);
  const [key] = [...store.contents.keys()].filter((each) => each.endsWith(".car")) as [string];
  const object = store.contents.get(key) as { bytes: Uint8Array; modified: number };
  const bytes = Uint8Array.from(object.bytes);
  bytes.fill(0, 120, 140);
  store.contents.set(key, { ...object, bytes });
  assert.deepEqual(
    (await faults(other)).map(({ object }) => object),
    [key],
  );
  const third = await store.open({ graceMs: 0, onNotice: (text) => notices.push(text) });
  t.after(() => third.close());
  await third.blocks.compact();
  assert.equal((await third.blocks.upkeep.metrics()).segments, 2);
  assert.ok(notices.some((text) => text.includes(key)));
  assert.ok(store.contents.has(key));
  for (const { cid, bytes } of blocks.slice(1)) assert.deepEqual(await third.blocks.get(cid), bytes);
  // One object is gone, and one has other content.
  for (const each of [...store.contents.keys()]) if (each !== key) store.contents.delete(each);
  store.contents.set(key, { ...object, bytes: bytes.subarray(0, 100) });
  const said = (await faults(third)).map(({ fault }) => fault).sort();
  assert.deepEqual(said, [`has 100 bytes, not ${bytes.length}`, "is missing"]);
});

test("sixteen full segments, a GiB by default, need at most thirty requests", async (t) => {
  const { store, one } = await twoHosts(t);
  await one.blocks.put(samples(64, 16_000));
  await one.blocks.sync();
  await one.blocks.compact();
  assert.equal((await one.blocks.upkeep.metrics()).segments, 16);
  const requests = Object.values(one.objects.metrics).reduce((sum, { requests }) => sum + requests, 0);
  assert.ok(requests <= 30, `${requests} requests`);
  assert.equal(store.contents.size, 16);
});

test("a host that writes many small segments merges them automatically", async (t) => {
  const { one, other } = await twoHosts(t);
  const blocks = samples(70, 100);
  await inSegments(one, blocks);
  await one.blocks.compact();
  assert.ok((await one.blocks.upkeep.metrics()).segments < 64);
  assert.deepEqual(await contents(other.blocks), contentsOf(blocks));
});
