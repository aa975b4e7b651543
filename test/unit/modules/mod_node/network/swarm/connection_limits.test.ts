import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionTrimmer, connectionLimits } from "#node/network/swarm/connection_limits.ts";
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

test("of too many connections those with the lowest tag values are closed, but no protected or new one", async () => {
  await using a = await startPeer();
  const others = await Promise.all(Array.from({ length: 4 }, () => startPeer()));
  try {
    const [kept, asked, ...rest] = others as [(typeof others)[0], (typeof others)[0], ...typeof others];
    const young = new ConnectionTrimmer(a.swarm.libp2p, { low: 1, high: 2, graceMs: 60_000 }, () => false);
    young.start();
    await connectTo(a, kept);
    await a.swarm.connectTagged(asked.swarm.id, asked.swarm.listenAddresses(), new AbortController().signal);
    await connectTo(a, rest[0] as (typeof others)[0]);
    young.stop();
    assert.equal(a.swarm.connections().length, 3);
    const trimming = new ConnectionTrimmer(a.swarm.libp2p, { low: 2, high: 3, graceMs: -1 }, (id) =>
      id.equals(kept.swarm.id),
    );
    trimming.start();
    const ended = rest.map((each) => next(each, "peer:disconnect"));
    await connectTo(a, rest[1] as (typeof others)[0]).catch(() => undefined);
    await Promise.all(ended);
    trimming.stop();
    const left = a.swarm.connections().map(({ remotePeer }) => remotePeer.toString());
    assert.deepEqual(left.sort(), [kept.swarm.id.toString(), asked.swarm.id.toString()].sort());
  } finally {
    await Promise.all(others.map((each) => each.stop()));
  }
});
