import assert from "node:assert/strict";
import { test } from "node:test";
import { Bootstrapper, Peering } from "#node/network/swarm/peering.ts";
import { NodeLog } from "#node/util/log.ts";
import { next, startPeer, type TestPeer } from "./support.ts";

const wanted = ({ swarm }: TestPeer) => ({ id: swarm.id, addresses: swarm.listenAddresses() });
const bootstrapEntry = ({ swarm }: TestPeer) => `${swarm.listenAddresses()[0]}/p2p/${swarm.id}`;

test("a peer that is to be kept is dialled, and dialled again when it leaves", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const peering = new Peering(a.swarm.libp2p, [wanted(b)], new NodeLog(), { firstPause: 20 });
  assert.equal(peering.protects(b.swarm.id), true);
  assert.equal(peering.protects(a.swarm.id), false);
  const met = [a, b].map((each) => next(each, "peer:connect"));
  peering.start();
  await Promise.all(met);
  const again = next(a, "peer:connect");
  await b.swarm.disconnect(a.swarm.id, undefined);
  await again;
  peering.stop();
});

test("a peer that is away is dialled until it is there", async () => {
  await using a = await startPeer();
  const b = await startPeer();
  const { id } = b.swarm;
  const addresses = b.swarm.listenAddresses();
  await b.stop();
  const port = addresses[0]?.toString() ?? "";
  const peering = new Peering(a.swarm.libp2p, [{ id, addresses }], new NodeLog(), { firstPause: 10 });
  const met = next(a, "peer:connect");
  peering.start();
  await using _again = await startPeer({
    config: { "Addresses.Swarm": [port] },
    prepare: (repo) => Promise.resolve(Object.assign(repo, { identity: b.repo.identity })).then(() => undefined),
  });
  assert.equal(String(await met), id.toString());
  peering.stop();
});

test("peers of the configuration are kept", async () => {
  await using b = await startPeer();
  const { id, addresses } = wanted(b);
  const met = next(b, "peer:connect");
  await using a = await startPeer({
    config: { "Peering.Peers": [{ ID: id.toString(), Addrs: addresses.map(String) }] },
  });
  assert.equal(String(await met), a.swarm.id.toString());
});

test("a start dials the bootstrap peers, and no more than are missing", async () => {
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

test("the list of the configuration is dialled, and what is not there makes no noise", async () => {
  await using b = await startPeer();
  const gone = await startPeer();
  const entries = [bootstrapEntry(b), bootstrapEntry(gone)];
  await gone.stop();
  const met = next(b, "peer:connect");
  await using a = await startPeer({ config: { Bootstrap: entries } });
  await met;
  assert.deepEqual([a.notices, a.logged], [[], []]);
});
