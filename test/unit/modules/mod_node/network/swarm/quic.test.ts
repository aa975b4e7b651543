/**
 * Tests QUIC v1 over the native package: streams with back-pressure, and its absence where it is
 * unavailable or disabled.
 */
import assert from "node:assert/strict";
import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { quic } from "@chainsafe/libp2p-quic";
import { generateKeyPair } from "@libp2p/crypto/keys";
import { type Stream, stop, type Upgrader } from "@libp2p/interface";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { pause, resume } from "#node/network/swarm/stream_backpressure.ts";
import { raceSignal } from "#node/util/async/abortable.ts";
import { eventually } from "#test/support/eventually.ts";
import { listeningSockets } from "#test/support/sockets.ts";
import { connectTo, fill, startPeer, type TestPeer } from "./support.ts";

const address = "/ip4/127.0.0.1/udp/0/quic-v1";
const config = { "Addresses.Swarm": [address] };
const protocol = "/test/stream";
const PACKAGE = "@chainsafe/libp2p-quic";

/**
 * Replaces the package until the returned function is called; `requests` has an entry for each time
 * it was loaded.
 */
function standIn(resolve: () => { readonly url: string }) {
  const requests: string[] = [];
  const hooks = registerHooks({
    resolve: (name, context, next) => {
      if (name !== PACKAGE) return next(name, context);
      requests.push(name);
      return { ...resolve(), shortCircuit: true };
    },
  });
  return { requests, [Symbol.dispose]: () => hooks.deregister() };
}

const withoutNativePart = () => ({
  url: `data:text/javascript,throw new Error("Cannot find native binding. npm has a bug")//${Math.random()}`,
});

async function streams(t: TestContext) {
  const a = await startPeer({ config });
  const b = await startPeer();
  t.after(() => Promise.all([a.stop(), b.stop()]));
  const { promise, resolve } = Promise.withResolvers<Stream>();
  await a.swarm.libp2p.handle(protocol, resolve);
  await connectTo(b, a);
  const far = await b.swarm.libp2p.dialProtocol(a.swarm.id, protocol);
  far.send(new Uint8Array(1));
  return { near: await promise, far, a, b };
}

test("peers meet over QUIC, identify each other and respond to pings", async () => {
  await using a = await startPeer({ config });
  await using b = await startPeer();
  assert.deepEqual([a.notices, b.notices], [[], []]);
  const connection = await connectTo(b, a);
  assert.deepEqual([connection.encryption, connection.multiplexer], ["native", "quic"]);
  assert.deepEqual((await b.swarm.peerInfo(a.swarm.id)).addresses.map(String), a.swarm.listenAddresses().map(String));
  await b.swarm.libp2p.dialProtocol(a.swarm.id, "/ipfs/ping/1.0.0");
  await b.swarm.disconnect(a.swarm.id, undefined);
  await eventually("the other side has closed the connection, too", () => a.swarm.connections().length === 0);
});

test("a slow reader slows the sender down, and gets everything when it continues", async (t) => {
  const { near, far } = await streams(t);
  near.maxReadBufferLength = 32 << 20;
  let received = 0;
  near.addEventListener("message", ({ data }) => void (received += data.byteLength));
  await eventually("the first byte has arrived", () => received === 1);
  pause(near);
  const taken = await fill(far, 64 << 20);
  assert.ok(taken < 32 << 20, `${taken} bytes were taken`);
  assert.equal(received, 1);
  resume(near);
  await eventually("all accepted bytes have arrived", () => received >= taken + 1);
  assert.equal(near.status, "open");
});

test("a reset does not count as an end, and the end of one direction leaves the other open", async (t) => {
  const reset = await streams(t);
  const ended: string[] = [];
  reset.near.addEventListener("remoteCloseWrite", () => ended.push("end"));
  reset.near.addEventListener("message", () => undefined);
  const closed = once(reset.near as unknown as EventTarget, "close");
  reset.far.abort(new Error("no more"));
  const [{ error }] = (await closed) as [{ readonly error?: Error }];
  assert.equal(error?.name, "StreamResetError");
  assert.deepEqual(ended, []);

  const { near, far } = await streams(t);
  let received = 0;
  far.addEventListener("message", ({ data }) => void (received += data.byteLength));
  near.addEventListener("message", () => undefined);
  const halfClosed = once(near as unknown as EventTarget, "remoteCloseWrite");
  await far.close();
  await halfClosed;
  near.send(new Uint8Array(1 << 20));
  await near.close();
  await eventually("the response has arrived", () => received === 1 << 20);
  await eventually("both ends are closed", () => near.status === "closed" && far.status === "closed");
});

/** A stream of the native package, as a foreign peer drives it. */
interface ForeignStream {
  read(maxLength: number): Promise<Uint8Array | null>;
  write(data: Uint8Array): Promise<void>;
  finishWrite(): Promise<void>;
  resetWrite(): Promise<void>;
  stopRead(): Promise<void>;
}

/** Connects a foreign peer by the native package alone; returns a function that opens streams. */
async function foreignPeer(t: TestContext, to: TestPeer) {
  const { promise, resolve } = Promise.withResolvers<{ outboundStream(): Promise<ForeignStream> }>();
  const upgrader = {
    upgradeOutbound: async (_: unknown, { muxerFactory }: { muxerFactory: { init: { connection: never } } }) =>
      resolve(muxerFactory.init.connection),
  };
  const { logger } = to.swarm.libp2p;
  const transport = quic()({ privateKey: await generateKeyPair("Ed25519"), logger });
  t.after(() => stop(transport));
  const [listening] = to.swarm.listenAddresses();
  const signal = AbortSignal.timeout(60_000);
  await transport.dial(parseMultiaddr(`${listening}/p2p/${to.swarm.id}`), { signal, upgrader: upgrader as never });
  const connection = await promise;
  const hello = Buffer.concat(
    ["/multistream/1.0.0\n", `${protocol}\n`].map((text) => Buffer.from([text.length, ...Buffer.from(text)])),
  );
  return async () => {
    const stream = await raceSignal(connection.outboundStream(), AbortSignal.timeout(60_000));
    await stream.write(hello);
    for (let received = 0; received < hello.length; ) {
      const piece = await stream.read(hello.length);
      assert.ok(piece !== null, "the stream ended before its protocol was agreed on");
      received += piece.length;
    }
    return stream;
  };
}

/** More streams than a peer may have open at a time. */
const MANY_STREAMS = 300;

const endings: Record<string, (stream: ForeignStream) => Promise<void>> = {
  "stops reading and then ends": async (stream) => {
    await stream.stopRead();
    await stream.finishWrite();
  },
  resets: async (stream) => {
    await stream.stopRead();
    await stream.resetWrite();
  },
};

for (const [ending, end] of Object.entries(endings)) {
  test(`a peer can open any number of streams that it ${ending} one after the other`, async (t) => {
    await using a = await startPeer({ config });
    // Garbage collection would end the streams, too.
    const retained: Stream[] = [];
    let opened = Promise.withResolvers<void>();
    await a.swarm.libp2p.handle(protocol, (stream) => {
      retained.push(stream);
      stream.addEventListener("message", () => undefined);
      stream.addEventListener("remoteCloseWrite", () => void stream.close());
      opened.resolve();
    });
    const openStream = await foreignPeer(t, a);
    while (retained.length < MANY_STREAMS) {
      opened = Promise.withResolvers();
      const stream = await openStream();
      await opened.promise;
      await end(stream);
    }
    await eventually("all streams are closed", () => retained.every(({ status }) => status !== "open"));
  });
}

/**
 * Returns a peer's address at which all its responses are lost, and the number of datagrams that
 * arrived.
 */
async function deafAddress(t: TestContext, peer: TestPeer) {
  const port = Number(/udp\/(\d+)/.exec(String(peer.swarm.listenAddresses()[0]))?.[1]);
  const front = createSocket("udp4");
  const back = createSocket("udp4");
  t.after(() => [front, back].map((socket) => socket.close()));
  let came = 0;
  front.on("message", (data: Buffer, _from: RemoteInfo) => {
    came += 1;
    back.send(data, port, "127.0.0.1");
  });
  front.bind(0, "127.0.0.1");
  await once(front, "listening");
  return { address: parseMultiaddr(`/ip4/127.0.0.1/udp/${front.address().port}/quic-v1`), came: () => came };
}

test("stalled handshakes do not block other peers", async (t) => {
  await using a = await startPeer({ config });
  await using b = await startPeer();
  await using c = await startPeer();
  const deaf = await deafAddress(t, a);
  const leave = new AbortController();
  const stalled = b.swarm.connect(a.swarm.id, [deaf.address], leave.signal);
  stalled.catch(() => undefined);
  await eventually("a handshake has begun", () => deaf.came() > 0);
  await connectTo(c, a);
  assert.equal(c.swarm.connections().length, 1);
  leave.abort(new Error("enough"));
  await assert.rejects(stalled, { message: "enough" });
});

test("a hundred stalled handshakes do not block other peers either", async (t) => {
  await using a = await startPeer({ config });
  await using c = await startPeer();
  const deaf = await deafAddress(t, a);
  const leave = new AbortController();
  t.after(() => leave.abort());
  const transport = quic()({ privateKey: await generateKeyPair("Ed25519"), logger: c.swarm.libp2p.logger });
  // None of these connections is ever upgraded.
  const upgrader = {} as Upgrader;
  const stalled = Array.from({ length: 100 }, () => transport.dial(deaf.address, { signal: leave.signal, upgrader }));
  void Promise.allSettled(stalled);
  await eventually("each handshake has begun", () => deaf.came() >= 100);
  await connectTo(c, a);
  assert.equal(c.swarm.connections().length, 1);
});

test("filters and limits hold for QUIC", async () => {
  await using a = await startPeer({ config });
  await using b = await startPeer();
  const [own] = a.swarm.listenAddresses();
  a.swarm.filters.add("/ip4/127.0.0.0/ipcidr/8");
  await assert.rejects(b.swarm.libp2p.dialProtocol(parseMultiaddr(`${own}/p2p/${a.swarm.id}`), "/ipfs/ping/1.0.0"));
  await eventually("the connection is gone", () => b.swarm.connections().length === 0);
  assert.equal(a.swarm.connections().length, 0);
  await assert.rejects(a.swarm.connect(b.swarm.id, [parseMultiaddr("/ip4/127.0.0.1/udp/9/quic-v1")]), {
    message: `failed to dial ${b.swarm.id}: no good addresses`,
  });
});

test("configured QUIC that is unavailable is reported with the reason, and the node continues", async () => {
  const both = { "Addresses.Swarm": ["/ip4/127.0.0.1/tcp/0", address] };
  const notices = async (more: Record<string, unknown> = {}) => {
    await using peer = await startPeer({ config: { ...both, ...more } });
    assert.equal(peer.swarm.listenAddresses().length, 1);
    assert.deepEqual(peer.logged, []);
    return peer.notices;
  };
  assert.deepEqual(await notices({ "Swarm.Transports.Network.QUIC": false }), [
    `${address} is not listened on: Swarm.Transports.Network.QUIC is false`,
  ]);
  using _hooks = standIn(withoutNativePart);
  const reason = `${PACKAGE} has no native part for ${process.platform} on ${process.arch} here`;
  assert.deepEqual(await notices(), [`${address} is not listened on: ${reason}`]);
  assert.deepEqual(await notices({ "Swarm.Transports.Network.QUIC": true }), [
    `QUIC is not listened on: ${reason}`,
    `${address} is not listened on: ${reason}`,
  ]);
});

test("the package is loaded by the first dial where no address is configured", async () => {
  using hooks = standIn(withoutNativePart);
  await using a = await startPeer();
  await using b = await startPeer();
  assert.deepEqual(a.notices, []);
  await connectTo(a, b);
  await b.stop();
  const before = hooks.requests.length;
  await assert.rejects(a.swarm.connect(b.swarm.id, [parseMultiaddr("/ip4/127.0.0.1/udp/9/quic-v1")]), {
    message: new RegExp(`\\[/ip4/127\\.0\\.0\\.1/udp/9/quic-v1\\] ${PACKAGE} has no native part`),
  });
  assert.equal(hooks.requests.length, before + 1);
});

test("a private network has no QUIC", async () => {
  const key = ["/key/swarm/psk/1.0.0/", "/base16/", "ab".repeat(32), ""].join("\n");
  const prepare = ({ path }: { readonly path: string }) => writeFile(join(path, "swarm.key"), key);
  const both = { "Addresses.Swarm": ["/ip4/127.0.0.1/tcp/0", address] };
  await using a = await startPeer({ prepare, config: both });
  assert.deepEqual(a.notices, [`${address} is not listened on: a private network has no QUIC`]);
  await assert.rejects(startPeer({ prepare, config: { ...both, "Swarm.Transports.Network.QUIC": true } }), {
    message: /The QUIC transport does not support private networks/,
  });
});

const linux = { skip: process.platform === "linux" ? false : "asks /proc/net what is listened on" };

test("QUIC is switched on and off while the node runs, and leaves no address open when it stops", linux, async () => {
  // Sockets of earlier tests may still be closing.
  const isOpen = async (socket: string) => (await listeningSockets()).includes(socket);
  const opened: string[] = [];
  {
    await using a = await startPeer({ config: { "Addresses.Swarm": ["/ip4/127.0.0.1/tcp/0", address] } });
    const ownSocket = () => {
      const udp = a.swarm
        .listenAddresses()
        .map(String)
        .flatMap((text) => /\/udp\/(\d+)/.exec(text)?.[1] ?? []);
      assert.equal(udp.length, 1);
      return `udp 127.0.0.1:${udp[0]}`;
    };
    opened.push(ownSocket());
    assert.ok(await isOpen(ownSocket()));
    await a.repo.config.set("Swarm.Transports.Network.QUIC", () => false);
    await a.swarm.live.renewListening();
    assert.equal(await isOpen(opened[0] as string), false);
    await a.repo.config.set("Swarm.Transports.Network.QUIC", () => true);
    await a.swarm.live.renewListening();
    opened.push(ownSocket());
    assert.ok(await isOpen(ownSocket()));
    await using b = await startPeer();
    await connectTo(b, a);
    assert.deepEqual((await b.swarm.peerInfo(a.swarm.id)).addresses.map(String), a.swarm.listenAddresses().map(String));
  }
  for (const socket of opened) assert.equal(await isOpen(socket), false, socket);
});
