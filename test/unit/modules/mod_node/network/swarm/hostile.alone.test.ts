import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { field } from "#test/support/protobuf.ts";
import { startPeer } from "./support.ts";
import { talkative } from "./talkative.ts";

const reported = 10_000;
const perMessage = 500;

const address = (at: number) =>
  field(2, parseMultiaddr(`/ip4/127.${at >> 16}.${(at >> 8) & 255}.${at & 255}/tcp/4001`).bytes);

const all = Array.from({ length: reported }, (_, at) => address(at));
const inParts = Array.from({ length: 10 }, (_, part) => all.slice(part * perMessage, (part + 1) * perMessage));

for (const [how, messages, isKnown] of [
  ["in one message", [all], false],
  ["in many messages", inParts, true],
] as const) {
  test(`a limited number of ten thousand addresses that a peer reports ${how} is stored`, async (t) => {
    await using a = await startPeer();
    const { libp2p: stranger } = await talkative(t, messages);
    await a.swarm.connect(stranger.peerId, stranger.getMultiaddrs(), AbortSignal.timeout(60_000));
    const facts = await a.swarm.peerInfo(stranger.peerId);
    assert.equal(facts.agentVersion, isKnown ? "talkative/1.0" : "");
    const { addresses } = await a.swarm.libp2p.peerStore.get(stranger.peerId);
    assert.ok(addresses.length <= 128 && addresses.length >= (isKnown ? 100 : 0), `${addresses.length} addresses`);
    assert.equal(a.swarm.connections(stranger.peerId).length, 1);
  });
}

test("addresses sent one after the other replace older ones, and nothing else is lost", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const { peerStore } = a.swarm.libp2p;
  await peerStore.merge(b.swarm.id, { metadata: { note: Buffer.from("kept") } });
  for (let at = 0; at < 300; at += 10) {
    const multiaddrs = Array.from({ length: 10 }, (_, more) =>
      parseMultiaddr(`/ip4/127.0.0.1/tcp/${5000 + at + more}`),
    );
    await peerStore.merge(b.swarm.id, { multiaddrs });
  }
  const { addresses, metadata } = await peerStore.get(b.swarm.id);
  assert.equal(addresses.length, 128);
  assert.ok(addresses.some(({ multiaddr }) => String(multiaddr).endsWith("/5299")));
  assert.equal(Buffer.from(metadata.get("note") ?? []).toString(), "kept");
});

test("nothing is sent to or received from the local network while local discovery is off", async () => {
  const datagrams = () => process.getActiveResourcesInfo().filter((kind) => /^UDP/.test(kind)).length;
  const before = datagrams();
  await using a = await startPeer();
  assert.equal(a.repo.config.value("Discovery.MDNS.Enabled"), false);
  assert.equal(datagrams(), before);
});
