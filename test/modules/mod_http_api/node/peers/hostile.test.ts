import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { generateKeyPair, publicKeyToProtobuf } from "@libp2p/crypto/keys";
import { noise } from "@libp2p/noise";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { createLibp2p } from "libp2p";
import { parseMultiaddr } from "../../../../../modules/mod_http_api/node/peers/multiaddr.ts";
import { fieldLength, writeField } from "../../../../../modules/mod_http_api/node/wire/protobuf.ts";
import { varintLength, writeVarint } from "../../../../../modules/mod_http_api/node/wire/varint.ts";
import { startPeer } from "./support.ts";

const told = 10_000;
const perMessage = 500;

function field(number: number, value: Uint8Array): Buffer {
  const into = Buffer.alloc(fieldLength(value.length));
  writeField(into, 0, number * 8 + 2, value);
  return into;
}

function framed(...fields: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(fields);
  const head = Buffer.alloc(varintLength(bytes.length));
  writeVarint(head, 0, bytes.length);
  return Buffer.concat([head, bytes]);
}

const address = (at: number) =>
  field(2, parseMultiaddr(`/ip4/127.${at >> 16}.${(at >> 8) & 255}.${at & 255}/tcp/4001`).bytes);

/** A peer that tells so many addresses of itself in each message, whenever it is asked. */
async function teller(t: TestContext, perMessage: readonly (readonly Buffer[])[]) {
  const privateKey = await generateKeyPair("Ed25519");
  const head = [field(1, publicKeyToProtobuf(privateKey.publicKey)), field(6, Buffer.from("talkative/1.0"))];
  const messages = perMessage.map((addresses) => framed(...head, ...addresses));
  const libp2p = await createLibp2p({
    privateKey,
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
  });
  t.after(() => libp2p.stop());
  await libp2p.handle("/ipfs/id/1.0.0", (stream) => {
    for (const message of messages) stream.send(message);
    void stream.close().catch(() => undefined);
  });
  return libp2p;
}

const all = Array.from({ length: told }, (_, at) => address(at));
const inParts = Array.from({ length: 10 }, (_, part) => all.slice(part * perMessage, (part + 1) * perMessage));

for (const [how, messages, isKnown] of [
  ["in one message", [all], false],
  ["in many messages", inParts, true],
] as const) {
  test(`of a peer that tells ten thousand addresses ${how} no more are kept than are of use`, async (t) => {
    await using a = await startPeer();
    const stranger = await teller(t, messages);
    const began = performance.now();
    await a.peers.connect(stranger.peerId, stranger.getMultiaddrs(), AbortSignal.timeout(20_000));
    const facts = await a.peers.facts(stranger.peerId);
    assert.equal(facts.agentVersion, isKnown ? "talkative/1.0" : "");
    const { addresses } = await a.peers.libp2p.peerStore.get(stranger.peerId);
    assert.ok(addresses.length <= 128 && addresses.length >= (isKnown ? 100 : 0), `${addresses.length} addresses`);
    assert.ok(performance.now() - began < 20_000);
    assert.equal(a.peers.connections(stranger.peerId).length, 1);
  });
}

test("addresses that are told one after the other push out the older ones, and what else is known stays", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const { peerStore } = a.peers.libp2p;
  await peerStore.merge(b.peers.id, { metadata: { note: Buffer.from("kept") } });
  for (let at = 0; at < 300; at += 10) {
    const multiaddrs = Array.from({ length: 10 }, (_, more) =>
      parseMultiaddr(`/ip4/127.0.0.1/tcp/${5000 + at + more}`),
    );
    await peerStore.merge(b.peers.id, { multiaddrs });
  }
  const { addresses, metadata } = await peerStore.get(b.peers.id);
  assert.equal(addresses.length, 128);
  assert.ok(addresses.some(({ multiaddr }) => String(multiaddr).endsWith("/5299")));
  assert.equal(Buffer.from(metadata.get("note") ?? []).toString(), "kept");
});

test("with discovery on the local network off nothing is sent there or heard from there", async () => {
  const datagrams = () => process.getActiveResourcesInfo().filter((kind) => /^UDP/.test(kind)).length;
  const before = datagrams();
  await using a = await startPeer();
  assert.equal(a.repo.config.value("Discovery.MDNS.Enabled"), false);
  assert.equal(datagrams(), before);
});
