import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectSocket, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { generateKeyPair, publicKeyToProtobuf } from "@libp2p/crypto/keys";
import type { Connection, Stream } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { createLibp2p } from "libp2p";
import { type Multiaddr, parseMultiaddr } from "../../../../../modules/mod_http_api/node/peers/multiaddr.ts";
import { fieldLength, writeField } from "../../../../../modules/mod_http_api/node/wire/protobuf.ts";
import { varintLength, writeVarint } from "../../../../../modules/mod_http_api/node/wire/varint.ts";
import { connectTo, startPeer, type TestPeer } from "./support.ts";

const linux = { skip: process.platform !== "linux" && "other systems have one address of their own" };

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

/** What is opened to a node from an address of this machine, and left alone; they end with the test. */
async function silent(t: TestContext, { peers }: TestPeer, count: number, localAddress: string): Promise<Socket[]> {
  const [address] = peers.listenAddresses();
  const port = Number(address?.getComponents().find(({ name }) => name === "tcp")?.value);
  const sockets = Array.from({ length: count }, () =>
    connectSocket({ port, host: "127.0.0.1", localAddress }).on("error", () => {}),
  );
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect").catch(() => undefined)));
  return sockets;
}

const openOf = (sockets: readonly Socket[]) => sockets.filter(({ readyState }) => readyState === "open").length;

test(
  "a thousand connections of one address are turned away but for some, and another address gets in",
  linux,
  async (t) => {
    await using a = await startPeer();
    await using b = await startPeer();
    const before = process.memoryUsage().heapUsed;
    const sockets = await silent(t, a, 1000, "127.0.0.9");
    const began = performance.now();
    await connectTo(b, a);
    assert.ok(performance.now() - began < 2000);
    for (const socket of sockets) socket.resume();
    const soon = AbortSignal.timeout(5000);
    while (openOf(sockets) > 256) await pause(10, undefined, { signal: soon });
    assert.ok(process.memoryUsage().heapUsed - before < 50 * 2 ** 20);
  },
);

test("of a peer that tells ten thousand protocols, again and again, no more are kept than are of use", async (t) => {
  await using a = await startPeer();
  await using b = await startPeer();
  const privateKey = await generateKeyPair("Ed25519");
  const stranger = await createLibp2p({
    privateKey,
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
  });
  t.after(() => stranger.stop());
  const head = [field(1, publicKeyToProtobuf(privateKey.publicKey)), field(6, Buffer.from("talkative/1.0"))];
  const messages = Array.from({ length: 10 }, (_, part) =>
    framed(...head, ...Array.from({ length: 1000 }, (_, at) => field(3, Buffer.from(`${part * 1000 + at}`)))),
  );
  const tell = (stream: Stream) => {
    for (const message of messages) stream.send(message);
    return stream.close().catch(() => undefined);
  };
  await stranger.handle("/ipfs/id/1.0.0", tell);
  const before = process.memoryUsage().heapUsed;
  await a.peers.connect(stranger.peerId, stranger.getMultiaddrs(), AbortSignal.timeout(20_000));
  assert.equal((await a.peers.facts(stranger.peerId)).agentVersion, "talkative/1.0");
  const [connection] = stranger.getConnections(a.peers.id) as [Connection];
  const pushes = Array.from({ length: 100 }, async () => tell(await connection.newStream("/ipfs/id/push/1.0.0")));
  await Promise.allSettled(pushes);
  await connectTo(b, a);
  const { protocols } = await a.peers.libp2p.peerStore.get(stranger.peerId);
  assert.ok(protocols.length > 0 && protocols.length <= 256, `${protocols.length} protocols`);
  assert.ok(process.memoryUsage().heapUsed - before < 100 * 2 ** 20);
});

test("while the node dials a thousand peers that never answer, one that somebody asks for is reached", async (t) => {
  await using a = await startPeer();
  await using b = await startPeer();
  const mute = createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1");
  t.after(() => mute.close());
  await once(mute, "listening");
  const { port } = mute.address() as { port: number };
  const leave = new AbortController();
  const { connectionManager } = Reflect.get(a.peers.libp2p, "components") as {
    connectionManager: { openConnection(address: Multiaddr, options: object): Promise<unknown> };
  };
  const dials = Array.from({ length: 1000 }, async () => {
    const id = peerIdFromPrivateKey(await generateKeyPair("Ed25519"));
    const address = parseMultiaddr(`/ip4/127.0.0.1/tcp/${port}/p2p/${id}`);
    await connectionManager.openConnection(address, { signal: leave.signal });
  });
  const over = Promise.allSettled(dials);
  await once(mute, "connection");
  const began = performance.now();
  await connectTo(a, b);
  assert.ok(performance.now() - began < 15_000);
  leave.abort();
  await over;
});
