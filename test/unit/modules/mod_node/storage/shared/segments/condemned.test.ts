/** Blocks that a collection condemns, until its decision and after it. */
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

test("a condemned block is stored, then undecided, then gone or rescued, on every host alike", async (t) => {
  const store = new SharedStore();
  const one = await store.open();
  const other = await store.open();
  t.after(() => Promise.all([one.close(), other.close()]));
  const blocks = samples(5, 1000);
  const [gone, rescued, again, restored, retained] = blocks.map(({ cid }) => cid) as [CID, CID, CID, CID, CID];
  await one.blocks.put(blocks);
  await one.blocks.sync();
  await condemn(one, 7, [gone, rescued, again, restored, sample(99).cid]);
  // First phase: condemned blocks are still stored.
  assert.deepEqual(await contents(other.blocks), contentsOf(blocks));
  await other.blocks.put(blocks);
  await other.blocks.sync();
  assert.equal(other.objects.metrics.put.requests, 0);
  const { condemnable } = other.blocks;
  const pending = [gone, retained, again, sample(99).cid];
  assert.deepEqual((await condemnable.condemned(7, pending)).map(String), [gone, again].map(String));
  assert.deepEqual((await Array.fromAsync(condemnable.stored(other.log.applied))).map(String), [String(retained)]);
  assert.deepEqual(await Array.fromAsync(condemnable.stored(0)), []);
  // Second phase: it is undecided whether the condemned blocks are removed.
  await condemnable.suspend(7);
  await condemnable.restore(7, [restored]);
  assert.deepEqual(await keysOf(other.blocks), [restored, retained].map(String).sort());
  assert.equal(await other.blocks.has(gone), false);
  assert.deepEqual(await condemnable.find(gone), blocks[0]?.bytes);
  let results = 0;
  const got = [gone, rescued].map((cid) => other.blocks.get(cid).finally(() => (results += 1)));
  const settled: string[] = [];
  await other.blocks.put([blocks[2] as (typeof blocks)[0]], { onNew: (cid) => settled.push(String(cid)) });
  await other.blocks.sync();
  assert.deepEqual(settled, [String(again)]);
  assert.equal(results, 0);
  await remove(one, 7, [rescued, restored]);
  assert.deepEqual(await Promise.all(got), [undefined, blocks[1]?.bytes]);
  for (const host of [one, other]) assert.deepEqual(await contents(host.blocks), contentsOf(blocks.slice(1)));
  assert.deepEqual(await one.blocks.stat(), await other.blocks.stat());
  // A host that starts now returns the same blocks.
  const third = await store.open();
  t.after(() => third.close());
  assert.deepEqual(await contents(third.blocks), contentsOf(blocks.slice(1)));
  assert.equal((await third.blocks.stat()).blocks, 4);
});

test("a caller that waits for the decision on a block is notified when the store becomes unreachable", async (t) => {
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

test("blocks that were stored after the start of a collection are not affected, nor are other forms of the bytes", async (t) => {
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

test("a collection continues after a restart, with a list in an object, and on a host that reads a snapshot", async (t) => {
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

test("a host whose index is rebuilt returns no blocks before it knows the removed ones", {
  timeout: 120_000,
}, async (t) => {
  const store = new SharedStore();
  const one = await store.open();
  const other = await store.open();
  t.after(() => Promise.all([one, other].map((host) => host.close())));
  const [block, retained] = samples(2, 100) as [Block, Block];
  for (const each of [block, retained]) {
    await one.blocks.put([each]);
    await one.blocks.sync();
  }
  assert.equal(await other.blocks.has(block.cid), true);
  await one.blocks.delete([block.cid]);
  assert.equal(await other.blocks.has(block.cid), false);
  // The other host misses some commits, and starts again with the first of them.
  const half = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  store.log.pageSize = 1;
  let reads = 0;
  store.log.onStep = (step, session) => {
    if (session !== other.log.session || step !== "read") return;
    reads += 1;
    // The first read shows that the host is behind, the second one starts again, and the third one
    // is its second page.
    if (reads < 3) return;
    half.resolve();
    return gate.promise;
  };
  await one.blocks.put(samples(1, 200));
  store.log.trim(store.log.head + 1);
  await one.blocks.sync();
  const looking = other.log.refresh();
  await half.promise;
  const pending = [other.blocks.has(block.cid), other.blocks.get(block.cid)];
  const putting = other.blocks.put([block]).then(() => other.blocks.sync());
  gate.resolve();
  assert.deepEqual(await Promise.all(pending), [false, undefined]);
  await Promise.all([looking, putting]);
  assert.deepEqual(await one.blocks.get(block.cid), block.bytes);
});

test("every list has its own name, unnamed ones are orphans when their session is over, and damaged ones are reported", async (t) => {
  const store = new SharedStore();
  const one = await store.open();
  const other = await store.open();
  t.after(() => other.close());
  const blocks = samples(300, 20);
  await one.blocks.put(blocks);
  await one.blocks.sync();
  const cids = blocks.map(({ cid }) => cid);
  const write = async ({ blocks: { condemnable } }: Host) => {
    const list = await condemnable.writeList(cids);
    return "object" in list ? list : assert.fail("300 CIDs are in the entry");
  };
  const list = await write(one);
  const again = await write(one);
  const others = await write(other);
  assert.equal(new Set([list, again, others].map(({ object }) => object)).size, 3);
  await one.log.commit((upTo) => ({ entries: [{ kind: "condemned", epoch: 1, upTo, list }], result: undefined }));
  await one.log.commit(() => ({ entries: [{ kind: "removed", epoch: 1, rescued: list }], result: undefined }));
  const old = `ab/${"0".repeat(64)}.cids`;
  await other.objects.put(old, new Uint8Array(1));
  // `again` and `others` are not orphans: their sessions are alive and may still commit them.
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
