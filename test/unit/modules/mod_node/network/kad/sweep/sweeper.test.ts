import assert from "node:assert/strict";
import { test } from "node:test";
import { kadIdOf } from "#node/network/kad/sweep/keyspace.ts";
import { holders, hour, minute, multihashes, settings, textOf, type World, worldOf } from "./support.ts";

const cycle = settings.interval;

/** Requires that the closest peers of each key have received it that many times. */
function assertStored({ dht }: World, keys: readonly Uint8Array[], times = 1): void {
  const found = holders(dht);
  for (const key of keys) {
    const wanted = dht.closest(kadIdOf(key)).flatMap((peer) => Array.from({ length: times }, () => peer.number));
    const stored = (found.get(textOf(key)) ?? []).map(({ number }) => number);
    assert.deepEqual(stored.sort(), wanted.sort());
  }
}

test("all keys are at the peers closest to them within a minute of the start, with few lookups and connections", async () => {
  const world = worldOf({ peers: 1000, keys: 3000 });
  const sweeper = world.sweeper();
  await sweeper.start();
  await world.clock.pass(minute - 1);
  assert.equal(world.dht.traffic.queries, 0);
  await world.clock.pass(10 * minute);
  assertStored(world, world.keys);
  const { lookups, records, connections } = world.dht.traffic;
  assert.equal(records, world.keys.length * 20);
  assert.ok(lookups < 250, `${lookups} lookups`);
  assert.ok(connections <= 2000, `${connections} connections`);
  const { metrics } = sweeper;
  assert.deepEqual([metrics.records, metrics.keys, metrics.failed], [records, world.keys.length, 0]);
  assert.ok((metrics.regionSize ?? 0) >= 20);
  assert.equal(sweeper.behindMs, 0);
  await sweeper.stop();
});

test("after the first minute each region is announced once per interval", async () => {
  const world = worldOf({ peers: 300, keys: 500 });
  const sweeper = world.sweeper();
  await sweeper.start();
  await world.clock.pass(hour);
  const first = world.dht.traffic.records;
  assert.equal(first, world.keys.length * 20);
  const sent: number[] = [];
  for (let hours = 0; hours < 22; hours += 1) {
    await world.clock.pass(hour);
    sent.push(world.dht.traffic.records - first);
  }
  assertStored(world, world.keys, 2);
  assert.ok(new Set(sent).size >= 6, `in ${new Set(sent).size} of the hours`);
  assert.deepEqual(world.warnings, []);
  await sweeper.stop();
});

test("a restart in the middle of a cycle resumes it", async () => {
  const world = worldOf({ peers: 500, keys: 800 });
  const first = world.sweeper({ workers: { max: 2, dedicated: { periodic: 1, burst: 1 } } });
  await first.start();
  await world.clock.pass(minute + 20_000);
  const before = world.dht.traffic.records;
  assert.ok(before > 0 && before < 800 * 20);
  // Only the records that an interrupted region had sent are sent again.
  await first.stop();
  const second = world.sweeper();
  await second.start();
  await world.clock.pass(30 * minute);
  const found = holders(world.dht);
  for (const key of world.keys) assert.ok((found.get(textOf(key))?.length ?? 0) >= 20);
  assert.ok(world.dht.traffic.records < 800 * 20 + before / 2);
  await second.stop();
  const records = world.dht.traffic.records;
  const renewed = world.sweeper({ resumes: false });
  await renewed.start();
  await world.clock.pass(30 * minute);
  assert.equal(world.dht.traffic.records - records, 800 * 20);
  await renewed.stop();
});

test("only regions that became due while the node was down are due at its start", async () => {
  const world = worldOf({ peers: 300, keys: 400 });
  const first = world.sweeper();
  await first.start();
  await world.clock.pass(hour);
  await first.stop();
  await world.clock.pass(cycle / 2);
  const before = world.dht.traffic.records;
  const second = world.sweeper();
  await second.start();
  await world.clock.pass(10 * minute);
  const sent = world.dht.traffic.records - before;
  assert.ok(sent > 400 * 20 * 0.3 && sent < 400 * 20 * 0.7, `${sent} records`);
  await second.stop();
});

test("new keys are announced at once, and again with the others", async () => {
  const world = worldOf({ peers: 500, keys: 0 });
  const sweeper = world.sweeper();
  await sweeper.start();
  await world.clock.pass(2 * minute);
  const keys = multihashes(300, 10_000);
  const settled: Uint8Array[] = [];
  const providing = sweeper.provide(keys, {
    stays: true,
    settled(some, error) {
      assert.equal(error, undefined);
      settled.push(...some);
    },
  });
  assert.equal(sweeper.workers.active.burst + sweeper.workers.queued("burst"), 0);
  await world.clock.pass(3 * minute);
  await providing;
  assert.deepEqual(settled.map(textOf).sort(), keys.map(textOf).sort());
  assertStored(world, keys);
  world.keys = keys;
  await world.clock.pass(cycle);
  assertStored(world, keys, 2);
  await sweeper.stop();
});

test("one new key is looked up by itself", async () => {
  const world = worldOf({ peers: 500, keys: 0 });
  const sweeper = world.sweeper();
  const [key] = multihashes(1) as [Uint8Array];
  const providing = sweeper.provide([key], { stays: false, settled: () => undefined });
  await world.clock.pass(minute);
  await providing;
  assertStored(world, [key]);
  assert.equal(world.dht.traffic.lookups, 1);
  await sweeper.stop();
});

test("a region whose peers accept nothing is tried again, and is late until then", async () => {
  const world = worldOf({ peers: 300, keys: 200 });
  const sweeper = world.sweeper();
  let isDeaf = true;
  world.dht.refuses = () => isDeaf;
  await sweeper.start();
  await world.clock.pass(3 * minute);
  assert.equal(world.dht.traffic.records, 0);
  assert.match(world.warnings[0] ?? "", /accepted no records/);
  assert.ok(sweeper.schedule.retries > 0);
  assert.ok(sweeper.behindMs >= 2 * minute - 1000);
  await world.clock.pass(hour);
  assert.ok(world.warnings.some((text) => /announcements are 6\d minutes late/.test(text)));
  isDeaf = false;
  await world.clock.pass(10 * minute);
  assert.ok(world.warnings.includes("announcements are on time again"));
  assertStored(world, world.keys);
  assert.deepEqual([sweeper.schedule.retries, sweeper.behindMs], [0, 0]);
  await sweeper.stop();
});

test("the sweep waits for the first peer, and is not late meanwhile", async () => {
  const world = worldOf({ peers: 100, keys: 50 });
  world.isOnline = false;
  const sweeper = world.sweeper();
  await sweeper.start();
  await world.clock.pass(30 * hour);
  assert.deepEqual([sweeper.behindMs, sweeper.connectivity.status], [0, "offline"]);
  await assert.rejects(sweeper.run(), { message: "failed to find any peer in table" });
  world.isOnline = true;
  sweeper.runIfDue();
  await world.clock.pass(10 * minute);
  assertStored(world, world.keys);
  world.isOnline = false;
  await world.clock.pass(2 * minute);
  assert.equal(sweeper.connectivity.status, "disconnected");
  await world.clock.pass(3 * hour);
  assert.equal(sweeper.connectivity.status, "offline");
  await sweeper.stop();
});

test("a network of three peers has all keys at all of them", async () => {
  const world = worldOf({ peers: 3, keys: 100 });
  const sweeper = world.sweeper();
  const running = sweeper.run();
  await world.clock.pass(minute);
  await running;
  for (const { length } of world.dht.records.values()) assert.equal(length, 100);
  assert.equal(world.dht.records.size, 3);
  assert.deepEqual([sweeper.last.provided, sweeper.last.regions], [100, 1]);
  await sweeper.stop();
});

test("the previous keys are announced if a collection fails, and the collection is tried again", async () => {
  const world = worldOf({ peers: 100, keys: 100 });
  let requests = 0;
  let isBroken = false;
  const source = () => ({
    name: "all",
    async *keys() {
      requests += 1;
      if (isBroken) throw new Error("the store is away");
      yield* world.keys;
    },
  });
  const sweeper = world.sweeper({}, { source });
  await sweeper.start();
  await world.clock.pass(hour);
  assert.equal(requests, 1);
  isBroken = true;
  await world.clock.pass(cycle);
  assert.equal(world.dht.traffic.records, 2 * 100 * 20);
  assert.ok(requests >= 2 && requests < 20, `${requests} times`);
  assert.match(world.warnings[0] ?? "", /cannot collect the keys to announce again: the store is away/);
  await sweeper.stop();
});

test("a run announces everything at once, and reports how much that was", async () => {
  const world = worldOf({ peers: 300, keys: 1000 });
  const sweeper = world.sweeper();
  const running = sweeper.run();
  await assert.rejects(sweeper.run(), { message: "reprovider is already running" });
  await world.clock.pass(30 * minute);
  await running;
  assertStored(world, world.keys);
  assert.equal(sweeper.last.provided, 1000);
  await sweeper.stop();
});

test("removed blocks are no longer announced in the next cycle", async () => {
  const world = worldOf({ peers: 100, keys: 100 });
  const sweeper = world.sweeper();
  await sweeper.start();
  await world.clock.pass(hour);
  world.keys = world.keys.slice(0, 40);
  const before = world.dht.traffic.records;
  await world.clock.pass(2 * cycle);
  assert.equal(sweeper.keystore.size, 40);
  assert.ok(world.dht.traffic.records - before < 40 * 20 * 2 + 100 * 20);
  await sweeper.stop();
});
