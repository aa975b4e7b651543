import assert from "node:assert/strict";
import { test } from "node:test";
import { generateKeyPair } from "@libp2p/crypto/keys";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { startPeer } from "../support.ts";

const lies = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => parseMultiaddr(`/ip4/99.0.${from}.${at}/tcp/1`));

test("a newly reported address is stored, with or without the peer's id, however many forged ones exist", async () => {
  await using node = await startPeer();
  const store = node.swarm.libp2p.peerStore;
  const id = peerIdFromPrivateKey(await generateKeyPair("Ed25519"));
  const known = async () => (await store.get(id)).addresses.map(({ multiaddr }) => `${multiaddr}`);
  await store.merge(id, { multiaddrs: lies(200) });
  assert.equal((await known()).length, 128);
  for (const real of ["/ip4/100.20.30.40/tcp/4001", "/ip4/100.20.30.41/tcp/4001"]) {
    const reported = real.endsWith("41/tcp/4001") ? `${real}/p2p/${id}` : real;
    const { addresses } = await store.merge(id, { multiaddrs: [parseMultiaddr(reported)] });
    assert.ok(addresses.some(({ multiaddr }) => `${multiaddr}` === real));
    assert.ok((await known()).includes(real));
    assert.equal((await known()).length, 128);
  }
});

test("a signed address is never evicted", async () => {
  await using node = await startPeer();
  const store = node.swarm.libp2p.peerStore;
  const id = peerIdFromPrivateKey(await generateKeyPair("Ed25519"));
  const signed = { multiaddr: parseMultiaddr("/ip4/100.20.30.40/tcp/4001"), isCertified: true };
  await store.merge(id, { addresses: [signed] });
  for (const round of [1, 2]) await store.merge(id, { multiaddrs: lies(128, round) });
  const { addresses } = await store.get(id);
  assert.equal(addresses.length, 128);
  assert.deepEqual(
    addresses.filter(({ isCertified }) => isCertified).map(({ multiaddr }) => `${multiaddr}`),
    [`${signed.multiaddr}`],
  );
});
