import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ShownStats, ShownSweep } from "#modules/mod_http_api/commands/provide_shapes.ts";
import { provideText } from "#modules/mod_http_api/commands/provide_text.ts";
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startOnline } from "./support.ts";

let host: RpcHost;
let other: RpcHost;

before(async () => {
  [host, other] = await Promise.all([startOnline({}, { api_level: "0.43" }), startOnline()]);
});
after(() => Promise.all([host, other].map((each) => each.stop())));

const stat = async () => (await host.value<{ Sweep: ShownSweep }>("provide/stat")).Sweep;

test("added content is announced by region, counted, and announced again on request at the level 0.9", async () => {
  assert.equal((await stat()).connectivity.status, "offline");
  const { Addresses } = await other.value<{ Addresses: string[] }>("id");
  await host.call(`swarm/connect?arg=${Addresses[0]}`);
  const [added] = (await host.call("add?pin=true", { a: "announced by region" })).lines;
  const { Hash } = added as { Hash: string };
  await eventually("the root is announced", async () => (await stat()).operations.past.keys_provided > 0);
  const { connectivity, queues, schedule, operations, network } = await stat();
  assert.deepEqual([connectivity.status, queues.pending_key_provides], ["online", 0]);
  assert.ok(schedule.keys > 0);
  assert.equal(schedule.regions, 1);
  assert.equal(operations.past.keys_failed, 0);
  assert.equal(network.avg_holders, 1);
  await eventually("the other node finds the provider", async () => {
    const { lines } = await other.call(`dht/findprovs?arg=${Hash}&num-providers=1`);
    return lines.some((line) => (line as { Type: number }).Type === 4);
  });
  assert.equal((await other.call("bitswap/reprovide")).status, 200);
  const [status, text] = await host.failure("bitswap/reprovide");
  assert.deepEqual([status, /SweepEnabled=false/.test(String(text))], [500, true]);
  assert.equal((await host.call("provide/clear?encoding=text")).text, "removed 0 items from provide queue\n");
});

const running: ShownSweep = {
  closed: false,
  connectivity: { status: "online", since: "2026-01-02T03:04:05Z" },
  queues: { pending_key_provides: 1234, pending_region_provides: 56, pending_region_reprovides: 1 },
  schedule: {
    keys: 1_234_567,
    regions: 512,
    avg_prefix_length: 9.04,
    next_reprovide_at: "0001-01-01T00:00:00Z",
    next_reprovide_prefix: "010110011",
  },
  workers: {
    max: 16,
    active: 15,
    active_periodic: 13,
    active_burst: 2,
    dedicated_periodic: 2,
    dedicated_burst: 1,
    queued_periodic: 0,
    queued_burst: 3,
    max_provide_conns_per_worker: 20,
  },
  timing: {
    uptime: 5e9,
    reprovides_interval: 79_200e9,
    cycle_start: "0001-01-01T00:00:00Z",
    current_time_offset: 61_234_000_000,
    max_reprovide_delay: 3600e9,
  },
  operations: {
    ongoing: { region_provides: 1, key_provides: 2500, region_reprovides: 13, key_reprovides: 0 },
    past: {
      records_provided: 24_691_340,
      keys_provided: 1_234_567,
      keys_failed: 3,
      keys_provided_per_minute: 1234.56,
      keys_reprovided_per_minute: 0,
      reprovide_duration: 12_345_678_901,
      avg_keys_per_reprovide: 2411.3,
      regions_reprovided_last_cycle: 512,
    },
  },
  network: {
    peers: 10_000,
    reachable: 9876,
    complete_keyspace_coverage: true,
    avg_region_size: 34.56,
    avg_holders: 19.9,
    replication_factor: 20,
  },
};
const shown: ShownStats = { Sweep: running, Legacy: null, FullRT: false };

test("the text is a summary, which mentions workers when few are left", () => {
  assert.equal(
    provideText(shown, {}),
    `Provide queue:       1.2k CIDs, 56 regions
Reprovide queue:     1 regions
CIDs scheduled:      1M (1,234,567)
Regions scheduled:   512
Avg record holders:  19.9
Ongoing provides:    2.5k CIDs, 1 regions
Ongoing reprovides:  0 CIDs,    13 regions
Total CIDs provided: 1M         (1,234,567)
Active workers:      15 / 16 (max)
Periodic workers:    13 active, 1 available, 0 queued
Burst workers:       2 active,  1 available, 3 queued
`,
  );
});

test("selected sections are printed, with titles if there are several, and all of them in two columns", () => {
  assert.equal(
    provideText(shown, { network: true }),
    `Avg record holders:     19.9
Peers swept:            10,000
Full keyspace coverage: true
Reachable peers:        9,876 (98%)
Avg region size:        34.5
Replication factor:     20
`,
  );
  assert.equal(
    provideText(shown, { queues: true, schedule: true }),
    `Queues:
  Provide queue:   1.2k CIDs, 56 regions
  Reprovide queue: 1 regions

Schedule:
  CIDs scheduled:        1M (1,234,567)
  Regions scheduled:     512
  Avg prefix length:     9
  Next region prefix:    010110011
  Next region reprovide: N/A
`,
  );
  const [first, second] = provideText(shown, { all: true, compact: true }).split("\n");
  assert.match(`${first}`, /^Schedule: +Connectivity:$/);
  assert.match(`${second}`, /^ {2}CIDs scheduled: 1M +\(1,234,567\) +Status: online \(2026-/);
  assert.throws(() => provideText(shown, { compact: true }), { message: "--compact requires --all flag" });
});

test("announcements block by block have a text of their own, without sections", () => {
  const Legacy = {
    TotalReprovides: 4321,
    LastReprovideBatchSize: 7,
    ReprovideInterval: 79_200e9,
    AvgReprovideDuration: 12_345_678,
    LastReprovideDuration: 2_345_678_901,
    LastRun: "0001-01-01T00:00:00Z",
  };
  const legacy: ShownStats = { Sweep: null, Legacy, FullRT: false };
  assert.equal(
    provideText(legacy, {}),
    "TotalReprovides:       4k (4,321)\nAvgReprovideDuration:  12.345ms\nLastReprovideDuration: 2.3s\n",
  );
  assert.throws(() => provideText(legacy, { all: true }), { message: "cannot use flags with legacy provide stats" });
});
