import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CID } from "multiformats/cid";
import { sha256 } from "multiformats/hashes/sha2";
import { raw } from "#node/formats/cid/codecs.ts";
import { NameCache } from "#node/network/ipns/cache.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import type { ConfigPath } from "#node/storage/repo/schema.ts";
import { autoConf, autoConfServer } from "#test/support/network/auto_conf_server.ts";
import {
  add,
  known,
  meet,
  outcome,
  providersIn,
  type RoutingNode,
  soon,
  startNode,
  until,
  untilProvided,
} from "../network/kad/support.ts";
import { change } from "./support.ts";

let a: RoutingNode;
let b: RoutingNode;
before(async () => {
  [a, b] = await Promise.all([startNode(), startNode()]);
});
after(() => Promise.all([a?.[Symbol.asyncDispose](), b?.[Symbol.asyncDispose]()]));

const addressesOf = ({ network: { swarm } }: RoutingNode) => swarm.listenAddresses();
const connected = () => a.network.swarm.connections(b.id).length > 0;
const rawCid = async (bytes: Uint8Array) => CID.createV1(raw, await sha256.digest(bytes));
const disconnect = async () => {
  if (connected()) await a.network.swarm.disconnect(b.id, undefined);
  await until(() => !connected());
};
const set = async (key: ConfigPath, value: unknown, node: LowLevelNode = a.node) =>
  assert.deepEqual(await change(node, key, value), []);

test("a bootstrap peer that is added is dialled at once", async () => {
  await set("Bootstrap", [`${addressesOf(b)[0]}/p2p/${b.id}`]);
  await until(connected);
  await set("Bootstrap", []);
  await disconnect();
});

test("a peer of Peering.Peers is dialled and protected from the change on, and no longer after the next", async () => {
  await set("Peering.Peers", [{ ID: b.id.toString(), Addrs: addressesOf(b).map(String) }]);
  await until(connected);
  await set("Swarm.ConnMgr.GracePeriod", "0s");
  await set("Swarm.ConnMgr.LowWater", 0);
  await set("Swarm.ConnMgr.HighWater", 0);
  assert.ok(connected(), "it is protected");
  await set("Peering.Peers", []);
  await set("Swarm.ConnMgr.HighWater", 0);
  // The limit holds as soon as it is set again.
  await set("Swarm.ConnMgr.LowWater", 1);
  await set("Swarm.ConnMgr.LowWater", 0);
  await until(() => !connected());
});

const reset: readonly (readonly [ConfigPath, unknown])[] = [
  ["Swarm.ConnMgr.LowWater", 600],
  ["Swarm.ConnMgr.HighWater", 900],
  ["Swarm.ConnMgr.GracePeriod", "20s"],
];

test("without a limit no connection is closed, and connections in their grace period stay", async () => {
  await set("Swarm.ConnMgr.Type", "none");
  await a.network.swarm.connect(b.id, addressesOf(b));
  await set("Swarm.ConnMgr.GracePeriod", "1h");
  await set("Swarm.ConnMgr.Type", "basic");
  assert.ok(connected(), "it is new");
  await set("Swarm.ConnMgr.GracePeriod", "0s");
  await until(() => !connected());
  for (const [key, value] of reset) await set(key, value);
});

test("a limit that cannot be read is written, waits with the reason, and the former one goes on", async () => {
  const waiting = await change(a.node, "Swarm.ConnMgr.Type", "odd");
  assert.deepEqual(waiting, [{ key: "Swarm.ConnMgr.Type", reason: 'unrecognized ConnMgr.Type: "odd"' }]);
  await set("Swarm.ConnMgr.Type", "basic");
});

test("resources bound the connections from the change on, and one that cannot be read waits", async () => {
  const open = async () => (await a.network.swarm.resources()).system.connections.limit;
  await set("Swarm.ResourceMgr.MaxMemory", "100MiB");
  assert.equal(await open(), 100);
  await set("Swarm.ResourceMgr.MaxFileDescriptors", 50);
  assert.equal(await open(), 50);
  await set("Swarm.ResourceMgr.Enabled", false);
  await assert.rejects(open(), { message: /^missing ResourceMgr: / });
  await set("Swarm.ResourceMgr.Enabled", null);
  const [waiting] = await change(a.node, "Swarm.ResourceMgr.MaxMemory", "odd");
  assert.match(waiting?.reason ?? "", /^parsing Swarm\.ResourceMgr\.MaxMemory: /);
  for (const key of ["MaxMemory", "MaxFileDescriptors"] as const) await set(`Swarm.ResourceMgr.${key}`, null);
  assert.equal(await open(), 3600);
});

test("an address filter holds from the change on, and is gone with it", async () => {
  await set("Swarm.AddrFilters", ["/ip4/127.0.0.0/ipcidr/8"]);
  // The filter does not close existing connections.
  await disconnect();
  await assert.rejects(a.network.swarm.connect(b.id, addressesOf(b)));
  assert.deepEqual(a.network.swarm.filters.list(), ["/ip4/127.0.0.0/ipcidr/8"]);
  const [waiting] = await change(a.node, "Swarm.AddrFilters", ["nonsense"]);
  assert.deepEqual(waiting, { key: "Swarm.AddrFilters", reason: "invalid multiaddr-filter format" });
  assert.deepEqual(a.network.swarm.filters.list(), ["/ip4/127.0.0.0/ipcidr/8"]);
  await set("Swarm.AddrFilters", []);
  await a.network.swarm.connect(b.id, addressesOf(b));
});

test("Reprovider.Strategy decides which blocks are announced again, and an unknown strategy changes nothing", async () => {
  await meet(a, b);
  await until(() => known(a) > 0);
  await add(a, "pinned");
  const loose = [1, 2, 3].map((seed) => Buffer.from(`loose ${seed}`));
  await a.node.blocks.put(await Promise.all(loose.map(async (bytes) => ({ cid: await rawCid(bytes), bytes }))));
  const provided = async () => {
    await a.routing.reprovide(AbortSignal.timeout(60_000));
    return a.routing.provideStat.lastReprovide.provided;
  };
  await set("Reprovider.Strategy", "roots");
  const roots = await provided();
  assert.equal(roots, (await Array.fromAsync(a.node.pins.list("recursive"))).length);
  await set("Reprovider.Strategy", "all");
  const all = await provided();
  assert.equal(all > roots, true);
  const [waiting] = await change(a.node, "Reprovider.Strategy", "odd");
  assert.equal(waiting?.reason, "unknown reprovider strategy 'odd'");
  assert.equal(await provided(), all);
  await set("Reprovider.Strategy", "roots");
});

test("a shorter Reprovider.Interval is due at once, and none at 0", async () => {
  const ran = a.routing.provideStat.total;
  await set("Reprovider.Interval", "1ms");
  await until(() => a.routing.provideStat.total > ran);
  await set("Reprovider.Interval", "0");
  const [waiting] = await change(a.node, "Reprovider.Interval", "often");
  assert.match(waiting?.reason ?? "", /invalid duration/);
  await set("Reprovider.Interval", "12h");
});

test("Provide.Enabled, Provide.Strategy and Provide.DHT.Interval go before the older keys", async () => {
  const { providing } = a.routing;
  await set("Provide.DHT.Interval", "5h");
  await set("Provide.Strategy", "pinned");
  await set("Provide.Enabled", false);
  assert.deepEqual([providing.interval, providing.isOff], [5 * 3_600_000, true]);
  assert.equal(providing.sweeper?.settings.interval, 5 * 3_600_000);
  await set("Provide.DHT.Interval", "0");
  assert.ok(providing.interval <= 0);
  await set("Provide.Enabled", null);
  await set("Provide.Strategy", null);
  await set("Provide.DHT.Interval", null);
  assert.deepEqual([providing.interval, providing.isOff], [12 * 3_600_000, false]);
});

test("how announcements are made by region follows Provide.DHT", async () => {
  const { providing } = a.routing;
  await set("Provide.DHT.MaxWorkers", 5);
  await set("Provide.DHT.DedicatedPeriodicWorkers", 3);
  await set("Provide.DHT.DedicatedBurstWorkers", 2);
  await set("Provide.DHT.MaxProvideConnsPerWorker", 7);
  await set("Provide.DHT.KeystoreBatchSize", 99);
  await set("Provide.DHT.OfflineDelay", "3h");
  await set("Provide.DHT.SendProviderRecordTimeout", "4s");
  const before = providing.sweeper?.settings;
  assert.deepEqual(before, {
    interval: 12 * 3_600_000,
    resumes: true,
    workers: { max: 5, dedicated: { periodic: 3, burst: 2 } },
    connections: 7,
    batchSize: 99,
    offlineAfter: 3 * 3_600_000,
    sendTimeout: 4000,
  });
  const [waiting] = await change(a.node, "Provide.DHT.MaxWorkers", 4);
  assert.match(waiting?.reason ?? "", /MaxWorkers/);
  assert.equal(providing.sweeper?.settings, before);
  await set("Provide.DHT.MaxWorkers", null);
});

test("with Experimental.StrategicProviding nothing is announced unless told to", async () => {
  await set("Experimental.StrategicProviding", true);
  const before = a.routing.provideStat.total;
  a.node.announce([await add(a, "quiet")]);
  await a.routing.reprovide(AbortSignal.timeout(60_000));
  assert.equal(a.routing.provideStat.total, before);
  assert.equal(a.routing.queued, 0);
  await set("Experimental.StrategicProviding", false);
  a.node.announce([await add(a, "loud")]);
  await until(() => a.routing.provideStat.total > before);
});

test("as many names are remembered as Ipns.ResolveCacheSize says", async () => {
  const cache = new NameCache(2);
  cache.set("one", "/ipfs/1", 60_000);
  cache.set("two", "/ipfs/2", 60_000);
  cache.resize(1);
  assert.deepEqual([cache.get("one"), cache.get("two")?.path], [undefined, "/ipfs/2"]);
  await set("Ipns.ResolveCacheSize", 1);
  const [waiting] = await change(a.node, "Ipns.ResolveCacheSize", -1);
  assert.equal(waiting?.reason, "cannot specify negative resolve cache size");
  await set("Ipns.ResolveCacheSize", 128);
});

test("a name is remembered for as long as Ipns.MaxCacheTTL says at most, from the change on", async (t) => {
  let bound = Number.POSITIVE_INFINITY;
  const cache = new NameCache(2, () => bound);
  t.mock.timers.enable({ apis: ["Date"] });
  cache.set("one", "/ipfs/1", 60_000);
  t.mock.timers.tick(5000);
  assert.equal(cache.get("one")?.until, 60_000);
  bound = 10_000;
  assert.equal(cache.get("one")?.until, 10_000);
  t.mock.timers.tick(5000);
  assert.equal(cache.get("one"), undefined);
  bound = 0;
  cache.set("one", "/ipfs/1", 60_000);
  bound = 60_000;
  assert.equal(cache.get("one"), undefined);
  await set("Ipns.MaxCacheTTL", "1m");
  await set("Ipns.MaxCacheTTL", null);
});

test("names are published again by Ipns.RepublishPeriod and Ipns.RecordLifetime, and a period out of bounds waits", async () => {
  await set("Ipns.RecordLifetime", "48h");
  await set("Ipns.RepublishPeriod", "1h");
  const [waiting] = await change(a.node, "Ipns.RepublishPeriod", "1s");
  assert.equal(waiting?.reason, "config setting IPNS.RepublishPeriod is not between 1min and 1day: 1s");
  await set("Ipns.RepublishPeriod", "");
});

test("the node answers queries of others as Routing.Type says, and none waits", async () => {
  const speaks = () => a.network.libp2p.getProtocols().includes("/ipfs/lan/kad/1.0.0");
  assert.equal(speaks(), true);
  await set("Routing.Type", "dhtclient");
  assert.equal(speaks(), false);
  await set("Routing.Type", "dhtserver");
  assert.deepEqual([speaks(), a.network.libp2p.getProtocols().includes("/ipfs/kad/1.0.0")], [true, true]);
  await set("Routing.Type", "dht");
  assert.deepEqual([speaks(), a.network.libp2p.getProtocols().includes("/ipfs/kad/1.0.0")], [true, false]);
  assert.deepEqual(await change(a.node, "Routing.Type", "none"), [
    { key: "Routing.Type", reason: "a change to or from `none` takes effect at the next start" },
  ]);
  await set("Routing.Type", "dht");
});

test("a peer of Routing.IgnoreProviders is named no longer as one who provides a block", async () => {
  await meet(a, b);
  const cid = await add(b, "of one who is to be ignored");
  await outcome(b.routing.provide(cid, soon()));
  await untilProvided(a, cid, b);
  await set("Routing.IgnoreProviders", [b.id.toCID().toString()]);
  const search = () => outcome(a.routing.findProviders(cid, { count: 1, signal: soon() }));
  assert.deepEqual(providersIn((await search()).events), []);
  const [waiting] = await change(a.node, "Routing.IgnoreProviders", ["nobody"]);
  assert.match(waiting?.reason ?? "", /^Routing.IgnoreProviders: /);
  assert.deepEqual(providersIn((await search()).events), []);
  await set("Routing.IgnoreProviders", []);
  assert.deepEqual(providersIn((await search()).events), [b.id.toString()]);
});

test("without Bitswap.ServerEnabled peers get nothing, from the change on", async () => {
  await a.network.swarm.connect(b.id, addressesOf(b));
  const heard = () => b.network.bitswap.stat().messagesReceived;
  await set("Bitswap.ServerEnabled", false, b.node);
  const before = heard();
  const leaving = new AbortController();
  const pending = a.node.blocks.get(await add(b, "kept to itself"), { signal: leaving.signal });
  await until(() => heard() > before);
  leaving.abort();
  await assert.rejects(pending);
  await set("Bitswap.ServerEnabled", true, b.node);
  const given = await a.node.blocks.get(await add(b, "given away"), { signal: soon() });
  assert.ok(Buffer.from(given).includes("given away"));
});

test("the values for the word auto are fetched while the node runs, and apply at once", async () => {
  await using server = await autoConfServer(autoConf(1, [`${addressesOf(b)[0]}/p2p/${b.id}`]));
  await disconnect();
  await set("AutoConf.TLSInsecureSkipVerify", false);
  await set("AutoConf.RefreshInterval", "1s");
  await set("AutoConf.URL", server.url);
  await set("Routing.Type", "auto");
  assert.equal(server.requests.length, 0);
  await set("Bootstrap", ["auto"]);
  await until(connected);
  await set("Routing.DelegatedRouters", ["auto"]);
  server.response = autoConf(2, []);
  await until(() => a.node.repo.config.auto.Bootstrap.length === 0);
  await set("AutoConf.Enabled", false);
  const count = server.requests.length;
  await set("Routing.DelegatedRouters", []);
  await set("Bootstrap", []);
  await set("AutoConf.Enabled", null);
  await set("Routing.Type", "dht");
  assert.equal(server.requests.length, count);
  await disconnect();
});
