import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectSocket, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { generateKeyPair } from "@libp2p/crypto/keys";
import type { Connection } from "@libp2p/interface";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { type Multiaddr, parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { heapUsed } from "#test/support/heap.ts";
import { field } from "#test/support/protobuf.ts";
import { connectTo, startPeer, type TestPeer } from "./support.ts";
import { talkative } from "./talkative.ts";

const linux = { skip: process.platform !== "linux" && "other systems have one address of their own" };

/**
 * Opens connections to a node from a local address and leaves them idle; they are closed when the
 * test ends.
 */
async function silent(t: TestContext, { swarm }: TestPeer, count: number, localAddress: string): Promise<Socket[]> {
  const [address] = swarm.listenAddresses();
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
  "most of a thousand connections from one address are refused, and another address can connect",
  linux,
  async (t) => {
    await using a = await startPeer();
    await using b = await startPeer();
    const before = await heapUsed();
    const sockets = await silent(t, a, 1000, "127.0.0.9");
    await connectTo(b, a);
    for (const socket of sockets) socket.resume();
    const soon = AbortSignal.timeout(60_000);
    while (openOf(sockets) > 256) await pause(10, undefined, { signal: soon });
    assert.ok((await heapUsed()) - before < 50 * 2 ** 20);
  },
);

test("only a limited number of ten thousand repeatedly announced protocols is stored", async (t) => {
  await using a = await startPeer();
  await using b = await startPeer();
  const messages = Array.from({ length: 10 }, (_, part) =>
    Array.from({ length: 1000 }, (_, at) => field(3, Buffer.from(`${part * 1000 + at}`))),
  );
  const { libp2p: stranger, report } = await talkative(t, messages);
  const before = await heapUsed();
  await a.swarm.connect(stranger.peerId, stranger.getMultiaddrs(), AbortSignal.timeout(60_000));
  assert.equal((await a.swarm.peerInfo(stranger.peerId)).agentVersion, "talkative/1.0");
  const [connection] = stranger.getConnections(a.swarm.id) as [Connection];
  const pushes = Array.from({ length: 100 }, async () => report(await connection.newStream("/ipfs/id/push/1.0.0")));
  await Promise.allSettled(pushes);
  await connectTo(b, a);
  const { protocols } = await a.swarm.libp2p.peerStore.get(stranger.peerId);
  assert.ok(protocols.length > 0 && protocols.length <= 256, `${protocols.length} protocols`);
  assert.ok((await heapUsed()) - before < 100 * 2 ** 20);
});

test("a requested peer is dialled while a thousand dials are queued", async (t) => {
  await using a = await startPeer();
  await using b = await startPeer();
  const mute = createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1");
  t.after(() => mute.close());
  await once(mute, "listening");
  const { port } = mute.address() as { port: number };
  const leave = new AbortController();
  const { connectionManager } = Reflect.get(a.swarm.libp2p, "components") as {
    connectionManager: { openConnection(address: Multiaddr, options: object): Promise<unknown> };
  };
  let ended = 0;
  const dials = Array.from({ length: 1000 }, async () => {
    const id = peerIdFromPrivateKey(await generateKeyPair("Ed25519"));
    const address = parseMultiaddr(`/ip4/127.0.0.1/tcp/${port}/p2p/${id}`);
    await connectionManager.openConnection(address, { signal: leave.signal }).finally(() => (ended += 1));
  });
  const over = Promise.allSettled(dials);
  await once(mute, "connection");
  await connectTo(a, b);
  assert.ok(ended < dials.length, "the others do not wait any more");
  leave.abort();
  await over;
});
