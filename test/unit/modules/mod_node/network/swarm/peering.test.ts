import assert from "node:assert/strict";
import { test } from "node:test";
import { Peering } from "#node/network/swarm/peering.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { NodeLog } from "#node/util/log.ts";
import { next, startPeer, type TestPeer } from "./support.ts";

const wanted = ({ swarm }: TestPeer) => ({ id: swarm.id, addresses: swarm.listenAddresses() });

test("a peering peer is dialled, and dialled again when it disconnects", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const peering = new Peering(a.swarm.libp2p, [wanted(b)], new NodeLog(), { minDelayMs: 20 });
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

test("an unreachable peering peer is dialled until it responds", async () => {
  await using a = await startPeer();
  const b = await startPeer();
  const { id } = b.swarm;
  const addresses = b.swarm.listenAddresses();
  await b.stop();
  const port = addresses[0]?.toString() ?? "";
  const peering = new Peering(a.swarm.libp2p, [{ id, addresses }], new NodeLog(), { minDelayMs: 10 });
  const met = next(a, "peer:connect");
  peering.start();
  await using _again = await startPeer({
    config: { "Addresses.Swarm": [port] },
    prepare: (repo) => Promise.resolve(Object.assign(repo, { identity: b.repo.identity })).then(() => undefined),
  });
  assert.equal(String(await met), id.toString());
  peering.stop();
});

test("the configured peering peers are dialled", async () => {
  await using b = await startPeer();
  const { id, addresses } = wanted(b);
  const met = next(b, "peer:connect");
  await using a = await startPeer({
    config: { "Peering.Peers": [{ ID: id.toString(), Addrs: addresses.map(String) }] },
  });
  assert.equal(String(await met), a.swarm.id.toString());
});

test("a configured peering peer without addresses is looked up by routing", async () => {
  await using b = await startPeer();
  const { id, addresses } = wanted(b);
  const met = next(b, "peer:connect");
  const requests: string[] = [];
  await using a = await startPeer({
    config: { "Peering.Peers": [{ ID: id.toString(), Addrs: [] }] },
    prepareSwarm: (swarm) => {
      swarm.findPeer = async (peer) => {
        requests.push(peer.toString());
        return addresses;
      };
    },
  });
  assert.equal(String(await met), a.swarm.id.toString());
  assert.deepEqual(requests, [id.toString()]);
});

test("a peer that was added is dialled after a restart, until it is removed, and is not among the configured ones", async () => {
  await using b = await startPeer();
  await using c = await startPeer();
  const metadata = memoryMetadata();
  const ids = ({ swarm }: TestPeer) => swarm.keepers.peered.map(({ id }) => id.toString()).sort();
  const added = wanted(b);
  const configured = wanted(c);
  {
    await using a = await startPeer({ metadata });
    const met = next(b, "peer:connect");
    await a.swarm.keepers.addPeered([added]);
    assert.equal(String(await met), a.swarm.id.toString());
  }
  const met = next(b, "peer:connect");
  await using a = await startPeer({
    metadata,
    config: { "Peering.Peers": [{ ID: configured.id.toString(), Addrs: configured.addresses.map(String) }] },
  });
  assert.equal(String(await met), a.swarm.id.toString());
  assert.deepEqual(ids(a), [added, configured].map(({ id }) => id.toString()).sort());
  a.swarm.keepers.renewPeering();
  assert.equal(ids(a).length, 2);
  await a.swarm.keepers.removePeered([added.id, configured.id]);
  assert.deepEqual(ids(a), []);
  a.swarm.keepers.renewPeering();
  assert.deepEqual(ids(a), [configured.id.toString()]);
});
