import assert from "node:assert/strict";
import { test } from "node:test";
import { allocate } from "#node/network/kad/sweep/allocate.ts";
import { explore, split } from "#node/network/kad/sweep/explore.ts";
import { isWithin, kadIdOf, Lookups, prefixesBelow } from "#node/network/kad/sweep/keyspace.ts";
import { Keystore, type SweepKey, sweepKey } from "#node/network/kad/sweep/keystore.ts";
import { type Cycle, Regions } from "#node/network/kad/sweep/regions.ts";
import { Workers } from "#node/network/kad/sweep/workers.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SimulatedDht } from "#test/support/network/simulated_dht.ts";
import { VirtualClock } from "#test/support/virtual_clock.ts";
import { hour, multihashes, textOf } from "./support.ts";

const never = new AbortController().signal;

test("a lookup key is found for each prefix", () => {
  const lookups = new Lookups();
  for (const length of [0, 1, 5, 9, 14]) {
    for (const prefix of prefixesBelow("", length).slice(-3)) {
      assert.ok(isWithin({ kadId: kadIdOf(lookups.keyIn(prefix)) }, prefix));
    }
  }
});

test("all peers of a region are found, and it is widened to have enough of them", async () => {
  const clock = new VirtualClock();
  const dht = new SimulatedDht({ peers: 600, clock });
  for (const [prefix, wanted] of [
    ["0101", "0101"],
    ["01010101010", undefined],
    ["", ""],
  ] as const) {
    const parts = { network: dht, lookups: new Lookups(), replication: 20, signal: never, manyPeers: true };
    const exploring = explore(prefix, parts);
    await clock.pass(hour);
    const region = await exploring;
    assert.ok(prefix.startsWith(region.prefix));
    if (wanted !== undefined) assert.equal(region.prefix, wanted);
    const inside = dht.peers.filter((peer) => isWithin(peer, region.prefix));
    const numbers = (peers: typeof inside) => peers.map(({ number }) => number).sort((a, b) => a - b);
    assert.deepEqual(numbers([...region.peers]), numbers(inside));
    assert.ok(region.peers.length >= 20);
    const pieces = split(region, 20);
    assert.equal(pieces.flatMap(({ peers }) => peers).length, region.peers.length);
    for (const { peers } of pieces) assert.ok(peers.length >= 20);
  }
});

test("a lookup that finds fewer peers than there are fails the region", async () => {
  const network = { closestPeers: async () => [{ kadId: kadIdOf(Buffer.from("alone")) }] };
  const parts = { network, lookups: new Lookups(), replication: 20, signal: never };
  await assert.rejects(explore("01", { ...parts, manyPeers: true }), { message: "a lookup found only 1 peers" });
  assert.equal((await explore("01", { ...parts, manyPeers: false })).prefix, "");
});

test("each key goes to the peers closest to it", () => {
  const dht = new SimulatedDht({ peers: 90, clock: new VirtualClock() });
  const keys = multihashes(200).map(sweepKey);
  const shares = allocate(keys, dht.peers, 20, 0);
  const stored = new Map<SweepKey, number[]>(keys.map((key) => [key, []]));
  for (const [peer, share] of shares) for (const key of share) stored.get(key)?.push(peer.number);
  for (const [key, numbers] of stored) {
    assert.deepEqual(
      numbers.sort(),
      dht
        .closest(key.kadId)
        .map(({ number }) => number)
        .sort(),
    );
  }
});

async function* each(keys: readonly Uint8Array[]) {
  for (const key of keys) yield sweepKey(key);
}

async function within(keystore: Keystore, prefix: string): Promise<readonly string[]> {
  const batches = await Array.fromAsync(keystore.within(prefix));
  return batches.flatMap((batch) => batch.map(({ multihash }) => textOf(multihash))).sort();
}

test("collected and added keys are found by region after a restart, each once", async () => {
  const metadata = memoryMetadata();
  const first = new Keystore(metadata, () => 64);
  await first.open();
  const old = multihashes(300);
  const added = multihashes(50, 1000);
  await first.collect(each(old), { at: 5, from: "all" });
  first.add([...added, ...old.slice(0, 10)].map(sweepKey));
  await first.close();
  const keystore = new Keystore(metadata, () => 64);
  await keystore.open();
  assert.deepEqual(keystore.collected, { at: 5, from: "all" });
  const all = [...old, ...added];
  for (const prefix of ["", "0", "1101", "001100110"]) {
    const wanted = all.filter((key) => isWithin(sweepKey(key), prefix)).map(textOf);
    assert.deepEqual(await within(keystore, prefix), wanted.sort());
    assert.equal(keystore.has(prefix), wanted.length > 0);
  }
  const keys = multihashes(5);
  await keystore.collect(each(keys), { at: 6, from: "pinned" });
  assert.deepEqual(await within(keystore, ""), keys.map(textOf).sort());
  assert.equal(keystore.size, 5);
  await keystore.close();
  // One chunk per bucket with keys, and the state of the collection.
  const stored = await Array.fromAsync(metadata.range({ prefix: "routing/sweep/keys" }));
  assert.ok(stored.length <= 6);
});

test("an incomplete collection of keys changes nothing", async () => {
  const metadata = memoryMetadata();
  const keystore = new Keystore(metadata, () => 4);
  await keystore.open();
  const keys = multihashes(20);
  await keystore.collect(each(keys), { at: 1, from: "all" });
  const broken = (async function* () {
    yield* each(multihashes(20, 100));
    throw new Error("the store is away");
  })();
  await assert.rejects(keystore.collect(broken, { at: 2, from: "all" }), { message: "the store is away" });
  assert.deepEqual([await within(keystore, ""), keystore.size], [keys.map(textOf).sort(), 20]);
  const again = new Keystore(metadata, () => 4);
  await again.open();
  assert.deepEqual([await within(again, ""), again.collected?.at], [keys.map(textOf).sort(), 1]);
});

test("regions are divided, merged and stored, and always cover all keys", async () => {
  const metadata = memoryMetadata();
  const first = new Regions(metadata, "wan");
  await first.open();
  first.cut(2);
  first.set("01", 100);
  first.set("0110", 200);
  assert.deepEqual(
    ["0100", "0110", "0111", "1"].map((prefix) => first.announced(prefix)),
    [100, 200, 100, 0],
  );
  assert.deepEqual(first.prefixes().toSorted(), ["00", "010", "0110", "0111", "10", "11"]);
  first.set("0", 300);
  assert.deepEqual(first.prefixes().toSorted(), ["0", "10", "11"]);
  await first.close();
  const again = new Regions(metadata, "wan");
  await again.open();
  assert.equal(again.announced("0111"), 300);
  const other = new Regions(metadata, "lan");
  await other.open();
  assert.equal(other.announced("0"), 0);
});

test("very many regions, which lying peers can cause, are loaded quickly after a restart", async () => {
  const metadata = memoryMetadata();
  const regions = new Regions(metadata, "wan");
  await regions.open();
  regions.set("", 1);
  regions.cut(12);
  regions.set("0101", 2);
  await regions.close();
  // Counts lookups of prefixes, because times are not meaningful.
  let looked = 0;
  const startsWith = String.prototype.startsWith;
  String.prototype.startsWith = function (...given) {
    looked += 1;
    return startsWith.apply(this, given);
  };
  const again = new Regions(metadata, "wan");
  await again.open().finally(() => {
    String.prototype.startsWith = startsWith;
  });
  const count = 2 ** 12 - 2 ** 8 + 1;
  assert.deepEqual([again.prefixes().length, again.announced("01010"), again.announced("1".repeat(12))], [count, 2, 1]);
  assert.ok(looked < 10 * count, `${count} regions were looked at ${looked} times`);
});

test("a region is due from its offset in each interval until it is announced", () => {
  const regions = new Regions(memoryMetadata(), "wan");
  regions.cut(2);
  const cycle: Cycle = { began: 1000, interval: 400 };
  for (const prefix of regions.prefixes()) regions.set(prefix, 1400);
  const due = (now: number) => [...regions.due(cycle, now)].map(({ prefix }) => prefix);
  assert.deepEqual([due(1499), due(1500), due(1650)], [[], ["01"], ["01", "10"]]);
  assert.deepEqual(
    regions.next(cycle, 1450, () => true),
    { prefix: "01", at: 1500 },
  );
  regions.set("01", 1650);
  assert.deepEqual(due(1650), ["10"]);
});

test("workers are shared, except for those that are reserved for the other kind", async () => {
  const workers = new Workers(() => ({ max: 4, dedicated: { periodic: 2, burst: 1 } }));
  const gate = Promise.withResolvers<void>();
  const begin = (kind: "periodic" | "burst") => workers.run(kind, never, () => gate.promise);
  const running = [begin("burst"), begin("burst"), begin("burst")];
  assert.deepEqual([workers.active.burst, workers.queued("burst")], [2, 1]);
  running.push(begin("periodic"), begin("periodic"), begin("periodic"));
  assert.deepEqual([workers.active.periodic, workers.queued("periodic")], [2, 1]);
  gate.resolve();
  await Promise.all(running);
  assert.deepEqual([workers.active, workers.queued("burst")], [{ periodic: 0, burst: 0 }, 0]);
  const leaving = new AbortController();
  const full = new Workers(() => ({ max: 0, dedicated: { periodic: 0, burst: 0 } }));
  const waiting = full.run("burst", leaving.signal, async () => 1);
  leaving.abort(new Error("closed"));
  await assert.rejects(waiting, { message: "closed" });
});
