import assert from "node:assert/strict";
import { test } from "node:test";
import { Bootstrapper } from "#node/network/swarm/bootstrapper.ts";
import { NodeLog } from "#node/util/log.ts";
import { next, startPeer, type TestPeer } from "./support.ts";

const bootstrapEntry = ({ swarm }: TestPeer) => `${swarm.listenAddresses()[0]}/p2p/${swarm.id}`;

test("a round dials no more bootstrap peers than are missing", async () => {
  const others = await Promise.all(Array.from({ length: 6 }, () => startPeer()));
  try {
    await using a = await startPeer();
    const bootstrapping = new Bootstrapper(
      a.swarm.libp2p,
      others.map(({ swarm }) => ({ id: swarm.id, address: swarm.listenAddresses()[0] })),
      new NodeLog(),
    );
    await bootstrapping.round();
    assert.equal(a.swarm.connections().length, 4);
    await bootstrapping.round();
    assert.equal(a.swarm.connections().length, 4);
    bootstrapping.stop();
  } finally {
    await Promise.all(others.map((each) => each.stop()));
  }
});

test("the configured list is dialled, and unreachable peers cause no notice", async () => {
  await using b = await startPeer();
  const gone = await startPeer();
  const entries = [bootstrapEntry(b), bootstrapEntry(gone)];
  await gone.stop();
  const met = next(b, "peer:connect");
  await using a = await startPeer({ config: { Bootstrap: entries } });
  await met;
  assert.deepEqual([a.notices, a.logged], [[], []]);
});
