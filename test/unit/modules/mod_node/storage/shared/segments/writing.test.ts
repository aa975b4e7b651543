/**
 * Writing blocks to the shared store: what is written, when, and what remains when a step fails.
 */
import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { failure } from "#node/util/errors.ts";
import { eventually } from "#test/support/eventually.ts";
import { contents, contentsOf, keysOf, sample, samples } from "../../blockstore/samples.ts";
import { type Host, SharedStore } from "./hosts.ts";

const lost = () => failure("STORE_UNAVAILABLE", { reason: "the response was lost" });

async function hosts(t: TestContext, count: number, options: Parameters<SharedStore["open"]>[0] = {}) {
  const store = new SharedStore();
  const opened = await Promise.all(Array.from({ length: count }, () => store.open(options)));
  t.after(() => Promise.allSettled(opened.map((host) => host.close())));
  return { store, hosts: opened as [Host, Host, Host] };
}

const segmentsOf = ({ log }: SharedStore) =>
  log.commits.flatMap(({ entries }) => entries.flatMap((entry) => (entry.kind === "segment" ? [entry.segment] : [])));

test("synced blocks exist on every host immediately, and unsynced ones do not", async (t) => {
  const { hosts: all } = await hosts(t, 3);
  const [one, other, third] = all;
  // A second segment, and an index that does not fit into the log.
  const blocks = [...samples(3, 50_000), ...samples(1200, 20, 100)];
  await one.blocks.put(blocks);
  assert.equal(await other.blocks.has((blocks[1202] as (typeof blocks)[0]).cid), false);
  await one.blocks.sync();
  for (const { cid, bytes } of blocks) assert.deepEqual(await other.blocks.get(cid), bytes);
  assert.deepEqual(await contents(third.blocks), contentsOf(blocks));
  assert.deepEqual((await third.blocks.forms(sample(2, 50_000).cid)).map(String), [String(sample(2, 50_000).cid)]);
  assert.deepEqual(await third.blocks.stat(), await one.blocks.stat());
});

test("concurrent syncs share one segment and one commit", async (t) => {
  const { store, hosts: all } = await hosts(t, 1);
  const [one] = all;
  const blocks = samples(50);
  await Promise.all(blocks.map((block) => one.blocks.put([block]).then(() => one.blocks.sync())));
  assert.ok(segmentsOf(store).length <= 3, `${segmentsOf(store).length} segments`);
  await Promise.all([one.blocks.sync(), one.blocks.sync()]);
  assert.equal(one.objects.metrics.put.requests, segmentsOf(store).length);
});

test("calls that fail while the store refuses writes accumulate no segments, and their blocks are stored later", async (t) => {
  let isAway = true;
  const { store, hosts: all } = await hosts(t, 2, {
    faults: { before: (kind) => (kind === "put" && isAway ? Promise.reject(lost()) : undefined) },
  });
  const [one, other] = all;
  const blocks = samples(100);
  for (const block of blocks) {
    await one.blocks.put([block]);
    await assert.rejects(one.blocks.sync(), { code: "STORE_UNAVAILABLE" });
  }
  // Each call tries the same segment again and starts none of its own.
  assert.ok(one.objects.metrics.put.requests <= 3 * blocks.length, `${one.objects.metrics.put.requests} requests`);
  assert.ok((await readdir(join(one.folder, "segments"))).length <= 4);
  isAway = false;
  await one.blocks.sync();
  assert.ok(segmentsOf(store).length <= 3);
  assert.deepEqual(await contents(other.blocks), contentsOf(blocks));
});

test("full segments are uploaded while the next one fills, and adding waits for a third", async (t) => {
  const gate = Promise.withResolvers<void>();
  const { store, hosts: all } = await hosts(t, 1, {
    faults: { before: (kind) => (kind === "put" ? gate.promise : undefined) },
  });
  const [one] = all;
  let put = 0;
  const putting = (async () => {
    for (const block of samples(12, 30_000)) {
      await one.blocks.put([block]);
      put += 1;
    }
  })();
  await eventually("six blocks are taken", () => put === 6 && one.objects.metrics.put.requests === 2);
  gate.resolve();
  await putting;
  await one.blocks.sync();
  assert.equal(segmentsOf(store).length, 6);
  assert.equal((await keysOf(one.blocks)).length, 12);
});

test("the first segment after a sync is short, and each next one is twice as long", async (t) => {
  const { store, hosts: all } = await hosts(t, 1, { segmentBytes: 64 * 2 ** 20 });
  const [one] = all;
  // The content of blocks does not matter.
  const bytes = new Uint8Array(2 ** 20);
  const put = async (from: number, count: number) => {
    for (const { cid } of samples(count, 10, from)) await one.blocks.put([{ cid, bytes }]);
    await one.blocks.sync();
  };
  // Two concurrent uploads arrive in any order.
  const lengths = (from = 0) =>
    segmentsOf(store)
      .slice(from)
      .map(({ blocks }) => blocks)
      .sort((a, b) => a - b);
  await put(0, 52);
  assert.deepEqual(lengths(), [6, 15, 31]);
  await put(100, 17);
  assert.deepEqual(lengths(3), [2, 15]);
});

test("a failed step leaves nothing half done: the next sync writes everything once", async (t) => {
  for (const [name, at] of [
    ["an upload", 0],
    ["an upload whose response is lost", 1],
    ["the commit", 2],
    ["the commit, whose response is lost", 3],
  ] as const) {
    await t.test(name, async (t) => {
      let failing = true;
      const fail = (when: number) => {
        if (failing && when === at) throw lost();
      };
      const { store, hosts: all } = await hosts(t, 2);
      const [one, other] = all;
      one.objects.faults = {
        before: (_, [key]) => (key?.endsWith(".car") ? fail(0) : undefined),
        after: (_, [key]) => (key?.endsWith(".car") ? fail(1) : undefined),
      };
      store.log.onStep = (step) => (step === "append" ? fail(2) : step === "appended" ? fail(3) : undefined);
      const blocks = samples(10);
      await one.blocks.put(blocks);
      await assert.rejects(one.blocks.sync(), { code: "STORE_UNAVAILABLE" });
      assert.deepEqual(await contents(one.blocks), contentsOf(blocks));
      failing = false;
      await one.blocks.sync();
      assert.deepEqual(await contents(other.blocks), contentsOf(blocks));
      assert.equal(segmentsOf(store).length, 1);
      assert.equal(store.contents.size, 1);
    });
  }
});

test("blocks are stored under an id of the new session after a session was lost", async (t) => {
  const { store, hosts: all } = await hosts(t, 2);
  const [one, other] = all;
  await one.blocks.put(samples(5));
  await one.blocks.sync();
  await one.blocks.put(samples(5, 100, 50));
  const { session } = one.log;
  store.log.endSession(session);
  await assert.rejects(one.blocks.sync(), { code: "SESSION_LOST" });
  await eventually("it has joined again", () => one.log.session > session);
  await one.blocks.sync();
  assert.deepEqual(await contents(other.blocks), contentsOf([...samples(5), ...samples(5, 100, 50)]));
  const ids = segmentsOf(store).map(({ id }) => id);
  assert.deepEqual(ids, [`${session.toString(36)}-1`, `${one.log.session.toString(36)}-1`]);
});

test("a host that ends without notice only loses unacknowledged blocks, and its ids are not used again", async (t) => {
  const store = new SharedStore();
  const one = await store.open();
  const acknowledged = samples(5, 20_000);
  await one.blocks.put(acknowledged);
  await one.blocks.sync();
  await one.blocks.put(samples(2, 100, 50));
  // The host ends without closing anything.
  store.log.endSession(one.log.session);
  const again = await store.open({ folder: `${one.folder}` });
  t.after(() => again.close());
  assert.deepEqual(await contents(again.blocks), contentsOf(acknowledged));
  assert.deepEqual((await readdir(join(again.folder, "segments"))).length, 2);
  await again.blocks.put([sample(99)]);
  await again.blocks.sync();
  const ids = segmentsOf(store).map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
});

test("a lost index is rebuilt from the store, and from CAR files alone if necessary", async (t) => {
  const store = new SharedStore();
  const one = await store.open();
  const blocks = [...samples(20, 10_000), ...samples(1200, 20, 100)];
  await one.blocks.put(blocks);
  await one.blocks.sync();
  await one.close();
  await rm(join(one.folder, "index"), { recursive: true });
  const again = await store.open({ folder: one.folder });
  assert.deepEqual(await contents(again.blocks), contentsOf(blocks));
  await again.close();
  for (const [key, object] of store.contents) {
    if (!key.endsWith(".idx")) continue;
    const bytes = Uint8Array.from(object.bytes);
    bytes[20] = (bytes[20] as number) ^ 1;
    store.contents.set(key, { ...object, bytes });
  }
  store.log.commits.forEach(({ entries }) => {
    for (const entry of entries) if (entry.kind === "segment") Object.assign(entry.segment, { index: undefined });
  });
  const notices: string[] = [];
  const fresh = await store.open({ onNotice: (text) => notices.push(text) });
  t.after(() => fresh.close());
  assert.deepEqual(await contents(fresh.blocks), contentsOf(blocks));
  for (const what of ["missing", "damaged"])
    assert.ok(notices.some((text) => new RegExp(`\\.idx is ${what}: reading .*\\.car instead`).test(text)));
});

test("a host before the beginning of the log reads the current state", async (t) => {
  const { store, hosts: all } = await hosts(t, 2);
  const [one, other] = all;
  const blocks = samples(30, 10_000);
  await one.blocks.put(blocks);
  await one.blocks.sync();
  await one.blocks.delete(blocks.slice(0, 10).map(({ cid }) => cid));
  store.log.trim();
  assert.deepEqual(await contents(other.blocks), contentsOf(blocks.slice(10)));
  assert.deepEqual(await other.blocks.stat(), await one.blocks.stat());
});

test("closing a store delays neither its log nor callers that wait for the index", async (t) => {
  const { store, hosts: all } = await hosts(t, 2);
  const [one, other] = all;
  store.log.pageSize = 1;
  for (const block of samples(6)) {
    await one.blocks.put([block]);
    await one.blocks.sync();
  }
  await other.blocks.close();
  await assert.rejects(other.log.refresh(), { code: "STORE_CLOSED" });
  await other.log.close();
});
