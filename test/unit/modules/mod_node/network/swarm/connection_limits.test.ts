import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConnectionTrimmer,
  connectionLimits,
  maxConnections,
  resourceLimits,
} from "#node/network/swarm/connection_limits.ts";
import { relayOptions } from "#node/network/swarm/relay_options.ts";
import { connectTo, next, startPeer } from "./support.ts";

const config = (values: Record<string, unknown>) =>
  ({ value: (path: string) => values[path] }) as unknown as Parameters<typeof connectionLimits>[0];

test("limits are those of the configuration, or the defaults", () => {
  const basic = {
    "Swarm.ConnMgr.Type": "basic",
    "Swarm.ConnMgr.LowWater": 20,
    "Swarm.ConnMgr.HighWater": 40,
    "Swarm.ConnMgr.GracePeriod": "1m",
  };
  assert.deepEqual(connectionLimits(config(basic)), { low: 20, high: 40, graceMs: 60_000 });
  assert.deepEqual(connectionLimits(config({ "Swarm.ConnMgr.Type": "" })), { low: 600, high: 900, graceMs: 20_000 });
  assert.equal(connectionLimits(config({ "Swarm.ConnMgr.Type": "none" })), undefined);
});

test("connections with the lowest tag values are closed above the limit, but no protected or new ones", async () => {
  await using a = await startPeer();
  const others = await Promise.all(Array.from({ length: 4 }, () => startPeer()));
  try {
    const [stored, requests, ...rest] = others as [(typeof others)[0], (typeof others)[0], ...typeof others];
    const young = new ConnectionTrimmer(a.swarm.libp2p, { low: 1, high: 2, graceMs: 60_000 }, () => false);
    young.start();
    await connectTo(a, stored);
    await a.swarm.connectTagged(requests.swarm.id, requests.swarm.listenAddresses(), new AbortController().signal);
    await connectTo(a, rest[0] as (typeof others)[0]);
    young.stop();
    assert.equal(a.swarm.connections().length, 3);
    const trimming = new ConnectionTrimmer(a.swarm.libp2p, { low: 2, high: 3, graceMs: -1 }, (id) =>
      id.equals(stored.swarm.id),
    );
    trimming.start();
    const ended = rest.map((each) => next(each, "peer:disconnect"));
    await connectTo(a, rest[1] as (typeof others)[0]).catch(() => undefined);
    await Promise.all(ended);
    trimming.stop();
    const left = a.swarm.connections().map(({ remotePeer }) => remotePeer.toString());
    assert.deepEqual(left.sort(), [stored.swarm.id.toString(), requests.swarm.id.toString()].sort());
  } finally {
    await Promise.all(others.map((each) => each.stop()));
  }
});

test("a relay limits the time and data of connections if the configuration says so", () => {
  const options = (values: Record<string, unknown>) =>
    relayOptions({
      value: (path: string) => values[path.replace("Swarm.RelayService.", "")] ?? null,
    } as unknown as Parameters<typeof relayOptions>[0]).reservations;
  const minute = 60_000;
  assert.deepEqual(options({}), {
    maxReservations: 128,
    reservationTtl: 60 * minute,
    applyDefaultLimit: false,
    defaultDurationLimit: 2 * minute,
    defaultDataLimit: 131_072n,
  });
  const { applyDefaultLimit, defaultDurationLimit, defaultDataLimit } =
    options({ ConnectionDurationLimit: "5m" }) ?? {};
  assert.deepEqual([applyDefaultLimit, defaultDurationLimit, defaultDataLimit], [true, 5 * minute, 131_072n]);
  const other = options({ ConnectionDataLimit: 1, MaxReservations: 2, ReservationTTL: "10m" }) ?? {};
  assert.deepEqual([other.applyDefaultLimit, other.defaultDataLimit], [true, 1n]);
  assert.deepEqual([other.maxReservations, other.reservationTtl], [2, 10 * minute]);
});

test("as many connections are accepted as the lowest of all limits allows", () => {
  const manager = (values: Record<string, unknown>) =>
    resourceLimits(
      config(Object.fromEntries(Object.entries(values).map(([name, value]) => [`Swarm.ResourceMgr.${name}`, value]))),
    );
  const limits = { low: 20, high: 40, graceMs: 0 };
  assert.equal(maxConnections(limits, manager({})), 160);
  assert.equal(maxConnections(limits, manager({ MaxMemory: "100MiB" })), 100);
  assert.equal(maxConnections(limits, manager({ MaxMemory: "1GiB", MaxFileDescriptors: 64 })), 64);
  assert.equal(maxConnections(undefined, manager({ MaxMemory: "1k" })), 1);
  assert.equal(maxConnections(undefined, manager({ Enabled: false, MaxFileDescriptors: 64 })), Number.MAX_SAFE_INTEGER);
  assert.throws(() => manager({ MaxMemory: "odd" }), { message: /^parsing Swarm\.ResourceMgr\.MaxMemory: / });
});

test("connections beyond Swarm.ResourceMgr are refused, until it allows more", async () => {
  await using a = await startPeer({ config: { "Swarm.ResourceMgr.MaxFileDescriptors": 1 } });
  await using b = await startPeer();
  await using c = await startPeer();
  await connectTo(b, a);
  await assert.rejects(connectTo(c, a));
  const { connections, descriptors, memory } = (await a.swarm.resources()).system;
  assert.deepEqual([connections, descriptors.limit], [{ used: 1, limit: 1 }, 1]);
  assert.ok((memory.limit ?? 0) > memory.used);
  await a.repo.config.set("Swarm.ResourceMgr.MaxFileDescriptors", () => 2);
  a.swarm.renewLimits();
  await connectTo(c, a);
  assert.equal(a.swarm.connections().length, 2);
  await a.repo.config.set("Swarm.ResourceMgr.Enabled", () => false);
  await assert.rejects(a.swarm.resources(), { message: /^missing ResourceMgr: / });
});
