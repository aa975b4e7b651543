/** What becomes of blocks that a collection condemns, until it has decided and after. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import type { Block } from "#node/storage/blockstore/store.ts";
import type { Entry } from "#node/storage/shared/log.ts";
import { as, contents, contentsOf, dagPb, keysOf, sample, samples } from "../../blockstore/samples.ts";
import { type Host, SharedStore } from "./hosts.ts";

const bytesOf = (cids: readonly CID[]) => cids.map(({ bytes }) => bytes);

const commit = ({ log }: Host, ...entries: Entry[]): Promise<number> =>
  log.commit((head) => ({
    entries: entries.map((entry) => (entry.kind === "condemned" ? { ...entry, upTo: head } : entry)),
    result: head,
  }));

const condemn = (host: Host, epoch: number, cids: readonly CID[]) =>
  commit(host, { kind: "condemned", epoch, upTo: 0, list: { cids: bytesOf(cids) } });

const remove = (host: Host, epoch: number, rescued: readonly CID[] = []) =>
  commit(host, { kind: "removed", epoch, rescued: { cids: bytesOf(rescued) } });

test("a condemned block is stored as before, then in doubt, then gone or rescued, on every host alike", async (t) => {
  const store = new SharedStore();
  const [one, other] = [await store.open(), await store.open()];
  t.after(() => Promise.all([one.close(), other.close()]));
  const blocks = samples(5, 1000);
  const [gone, rescued, again, restored, kept] = blocks.map(({ cid }) => cid) as [CID, CID, CID, CID, CID];
  await one.blocks.put(blocks);
  await one.blocks.sync();
  await condemn(one, 7, [gone, rescued, again, restored, sample(99).cid]);
  // As before.
  assert.deepEqual(await contents(other.blocks), contentsOf(blocks));
  await other.blocks.put(blocks);
  await other.blocks.sync();
  assert.equal(other.objects.figures.put.requests, 0);
  const { condemnable } = other.blocks;
  const asked = [gone, kept, again, sample(99).cid];
  assert.deepEqual((await condemnable.condemned(7, asked)).map(String), [gone, again].map(String));
  assert.deepEqual((await Array.fromAsync(condemnable.stored(other.log.applied))).map(String), [String(kept)]);
  assert.deepEqual(await Array.fromAsync(condemnable.stored(0)), []);
  // In doubt.
  await condemnable.suspend(7);
  await condemnable.restore(7, [restored]);
  assert.deepEqual(await keysOf(other.blocks), [restored, kept].map(String).sort());
  assert.equal(await other.blocks.has(gone), false);
  assert.deepEqual(await condemnable.find(gone), blocks[0]?.bytes);
  let answers = 0;
  const got = [gone, rescued].map((cid) => other.blocks.get(cid).finally(() => (answers += 1)));
  const told: string[] = [];
  await other.blocks.put([blocks[2] as (typeof blocks)[0]], { onNew: (cid) => told.push(String(cid)) });
  await other.blocks.sync();
  assert.deepEqual(told, [String(again)]);
  assert.equal(answers, 0);
  await remove(one, 7, [rescued, restored]);
  assert.deepEqual(await Promise.all(got), [undefined, blocks[1]?.bytes]);
  for (const host of [one, other]) assert.deepEqual(await contents(host.blocks), contentsOf(blocks.slice(1)));
  assert.deepEqual(await one.blocks.stat(), await other.blocks.stat());
  // A host that begins now says the same.
  const third = await store.open();
  t.after(() => third.close());
  assert.deepEqual(await contents(third.blocks), contentsOf(blocks.slice(1)));
  assert.equal((await third.blocks.stat()).blocks, 4);
});

test("who waits for the decision on a block is told when the store goes away", async (t) => {
  const store = new SharedStore();
  const one = await store.open();
  t.after(() => one.close());
  const block = sample(1);
  await one.blocks.put([block]);
  await one.blocks.sync();
  await condemn(one, 1, [block.cid]);
  await one.blocks.condemnable.suspend(1);
  const looked = Promise.withResolvers<void>();
  store.log.onStep = () => looked.resolve();
  const got = assert.rejects(one.blocks.get(block.cid), { code: "STORE_UNAVAILABLE" });
  await looked.promise;
  store.log.available = false;
  await got;
  store.log.available = true;
  await remove(one, 1, [block.cid]);
  assert.deepEqual(await one.blocks.get(block.cid), block.bytes);
});

test("what was stored behind the moment of a collection is not concerned, nor is another form of the bytes", async (t) => {
  const store = new SharedStore();
  const one = await store.open();
  t.after(() => one.close());
  const block = sample(1);
  const form = { cid: as(block.cid, dagPb), bytes: block.bytes };
  await one.blocks.put([block, form]);
  await one.blocks.sync();
  await commit(one, { kind: "metadata", changes: [] });
  await one.log.commit(() => ({
    entries: [{ kind: "condemned", epoch: 1, upTo: 0, list: { cids: bytesOf([block.cid]) } }],
    result: undefined,
  }));
  assert.deepEqual(await one.blocks.condemnable.condemned(1, [block.cid]), []);
  await remove(one, 1);
  await condemn(one, 2, [block.cid]);
  await remove(one, 2);
  assert.deepEqual(await contents(one.blocks), contentsOf([form]));
});

test("a collection goes on after a restart, with a list that is an object, and on a host that takes a snapshot", async (t) => {
  const store = new SharedStore();
  let one = await store.open();
  const blocks = samples(600, 20);
  await one.blocks.put(blocks);
  await one.blocks.sync();
  const list = await one.blocks.condemnable.writeList(blocks.slice(0, 500).map(({ cid }) => cid));
  assert.ok("object" in list && list.count === 500);
  await one.log.commit((upTo) => ({ entries: [{ kind: "condemned", epoch: 3, upTo, list }], result: undefined }));
  assert.equal((await Array.fromAsync(one.blocks.condemnable.readList(list))).length, 500);
  await one.close();
  one = await store.open({ folder: one.folder });
  t.after(() => one.close());
  await one.blocks.condemnable.suspend(3);
  assert.equal(await one.blocks.has((blocks[3] as (typeof blocks)[0]).cid), false);
  const rescued = await one.blocks.condemnable.writeList(blocks.slice(0, 400).map(({ cid }) => cid));
  await one.log.commit(() => ({ entries: [{ kind: "removed", epoch: 3, rescued }], result: undefined }));
  const left = contentsOf([...blocks.slice(0, 400), ...blocks.slice(500)]);
  assert.deepEqual(await contents(one.blocks), left);
  store.log.trim();
  const other = await store.open();
  t.after(() => other.close());
  assert.deepEqual(await contents(other.blocks), left);
  assert.deepEqual(await other.blocks.stat(), await one.blocks.stat());
});

test("a host whose index is made anew says nothing of blocks before it knows which were removed", {
  timeout: 120_000,
}, async (t) => {
  const store = new SharedStore();
  const [one, other] = [await store.open(), await store.open()];
  t.after(() => Promise.all([one, other].map((host) => host.close())));
  const [block, kept] = samples(2, 100) as [Block, Block];
  for (const each of [block, kept]) {
    await one.blocks.put([each]);
    await one.blocks.sync();
  }
  assert.equal(await other.blocks.has(block.cid), true);
  await one.blocks.delete([block.cid]);
  assert.equal(await other.blocks.has(block.cid), false);
  // The other one misses some commits, and begins anew with the first of them.
  const [half, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  store.log.pageSize = 1;
  let reads = 0;
  store.log.onStep = (step, session) => {
    if (session !== other.log.session || step !== "read") return;
    reads += 1;
    // The look that finds it behind, the beginning, and the second page.
    if (reads < 3) return;
    half.resolve();
    return gate.promise;
  };
  await one.blocks.put(samples(1, 200));
  store.log.trim(store.log.head + 1);
  await one.blocks.sync();
  const looking = other.log.refresh();
  await half.promise;
  const asked = [other.blocks.has(block.cid), other.blocks.get(block.cid)];
  const putting = other.blocks.put([block]).then(() => other.blocks.sync());
  gate.resolve();
  assert.deepEqual(await Promise.all(asked), [false, undefined]);
  await Promise.all([looking, putting]);
  assert.deepEqual(await one.blocks.get(block.cid), block.bytes);
});

test("a list has a name of its own; those that nothing names are orphans once their session is over, and those that are damaged are told", async (t) => {
  const store = new SharedStore();
  const [one, other] = [await store.open(), await store.open()];
  t.after(() => other.close());
  const blocks = samples(300, 20);
  await one.blocks.put(blocks);
  await one.blocks.sync();
  const cids = blocks.map(({ cid }) => cid);
  const write = async ({ blocks: { condemnable } }: Host) => {
    const list = await condemnable.writeList(cids);
    return "object" in list ? list : assert.fail("300 CIDs are in the entry");
  };
  const [list, again, others] = [await write(one), await write(one), await write(other)];
  assert.equal(new Set([list, again, others].map(({ object }) => object)).size, 3);
  await one.log.commit((upTo) => ({ entries: [{ kind: "condemned", epoch: 1, upTo, list }], result: undefined }));
  await one.log.commit(() => ({ entries: [{ kind: "removed", epoch: 1, rescued: list }], result: undefined }));
  const old = `ab/${"0".repeat(64)}.cids`;
  await other.objects.put(old, new Uint8Array(1));
  // Its session may still commit the other one.
  assert.deepEqual(await other.blocks.upkeep.orphans(), [old]);
  const faults = () => Array.fromAsync(other.blocks.upkeep.verify());
  assert.deepEqual(await faults(), []);
  await one.close();
  assert.deepEqual([...(await other.blocks.upkeep.deleteOrphans())].sort(), [old, again.object].sort());
  assert.deepEqual(await faults(), []);
  await other.objects.put(list.object, new Uint8Array([9, 1]));
  assert.deepEqual(await faults(), [{ object: list.object, fault: "is damaged" }]);
  await assert.rejects(Array.fromAsync(other.blocks.condemnable.readList(list)), { code: "STORE_UNAVAILABLE" });
  await other.objects.delete([list.object]);
  assert.deepEqual(await faults(), [{ object: list.object, fault: "is missing" }]);
});
