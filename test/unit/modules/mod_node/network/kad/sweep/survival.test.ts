import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { Division } from "#node/storage/shared/work_shares.ts";
import { holders, hour, minute, textOf, worldOf } from "./support.ts";

test("a node that is killed in the middle of a cycle resumes it after a restart", async () => {
  const world = worldOf({ peers: 500, keys: 800 });
  const killed = world.sweeper({ workers: { max: 2, dedicated: { periodic: 1, burst: 1 } } });
  await killed.start();
  await world.clock.pass(minute + 20_000);
  const before = world.dht.traffic.records;
  assert.ok(before > 0 && before < 800 * 20);
  // Announcements are recorded within a second, even if the node never closes.
  await pause(1200);
  killed.pause();
  const dead = killed.connectivity.status;
  const next = world.sweeper();
  await next.start();
  await world.clock.pass(30 * minute);
  const found = holders(world.dht);
  for (const key of world.keys) assert.ok((found.get(textOf(key))?.length ?? 0) >= 20);
  const again = world.dht.traffic.records - 800 * 20;
  assert.ok(again < before, `${again} of ${before} records were sent again`);
  assert.equal(dead, "online");
  await next.stop();
});

test("hosts of a shared store announce each key once, and others take over the regions of one that leaves", async () => {
  const world = worldOf({ peers: 400, keys: 600 });
  let members = [1, 2];
  const hostOf = (own: number) =>
    world.sweeper({}, { hostMetadata: memoryMetadata(), shares: { division: async () => new Division(own, members) } });
  const hosts = [hostOf(1), hostOf(2)] as const;
  for (const host of hosts) await host.start();
  await world.clock.pass(hour);
  assert.equal(world.dht.traffic.records, 600 * 20);
  assert.equal(hosts[0].keystore.size + hosts[1].keystore.size, 600);
  for (const { keystore } of hosts) assert.ok(keystore.size > 150, `${keystore.size} keys`);
  await hosts[0].stop();
  members = [2];
  await world.clock.pass(22 * hour);
  assert.equal(hosts[1].keystore.size, 600);
  const found = holders(world.dht);
  for (const key of world.keys) assert.ok((found.get(textOf(key))?.length ?? 0) >= 40);
  await hosts[1].stop();
});
