import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer, get } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Stream } from "@libp2p/interface";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { P2p, type P2pDeps } from "#node/network/p2p/p2p.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import type { NamedPeer } from "#node/network/swarm/resolve_peers.ts";
import { NodeLog } from "#node/util/log.ts";
import { freePort } from "#test/support/free_port.ts";
import { connectTo, startPeer, type TestPeer } from "#test/unit/modules/mod_node/network/swarm/support.ts";

const plain = { custom: false };
const mebibyte = 1024 * 1024;
const quiet = { custom: false, reportPeer: false };

interface Pair {
  readonly a: P2p;
  readonly b: P2p;
  readonly peerA: TestPeer;
  readonly peerB: TestPeer;
}

/** Two connected nodes that both allow forwarding. */
async function pair(t: TestContext): Promise<Pair> {
  const peerA = await startPeer();
  const peerB = await startPeer();
  const [a, b] = [peerA, peerB].map(({ swarm }) => new P2p({ libp2p: swarm.libp2p, swarm, log: new NodeLog() }));
  assert.ok(a && b);
  await a.start();
  await b.start();
  t.after(async () => {
    await Promise.all([a.stop(), b.stop()]);
    await Promise.all([peerA.stop(), peerB.stop()]);
  });
  await connectTo(peerB, peerA);
  return { a, b, peerA, peerB };
}

async function listening(t: TestContext, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const tcp = (port: number) => parseMultiaddr(`/ip4/127.0.0.1/tcp/${port}`);
const portOf = (mounts: P2p) => Number(mounts.list()[0]?.listen.split("/").at(-1));

/** Connects from a socket of B through a stream to `port` at A. */
async function tunnel({ a, b, peerA }: Pair, port: number, options = quiet): Promise<number> {
  await a.listen("/x/test", tcp(port), options);
  await b.forward("/x/test", tcp(0), { id: peerA.swarm.id, addresses: [] }, plain);
  return portOf(b);
}

/** Resolves to everything that arrives until the other end closes. */
async function readAll(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of socket) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

test("megabytes cross in both directions at the same time, unchanged", async (t) => {
  const nodes = await pair(t);
  const port = await listening(
    t,
    createServer((socket) => socket.on("error", () => {}).pipe(socket)),
  );
  const local = await tunnel(nodes, port);
  const sent = randomBytes(8 * 1024 * 1024);
  const socket = connect(local, "127.0.0.1");
  const back = readAll(socket);
  socket.end(sent);
  const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
  assert.equal(digest(await back), digest(sent));
});

test("each direction closes independently: after its end a side may still receive data", async (t) => {
  const nodes = await pair(t);
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let requests = "";
    socket.on("data", (bytes) => (requests += bytes)).on("end", () => socket.end(`you said ${requests}`));
  });
  const local = await tunnel(nodes, await listening(t, server));
  const socket = connect({ port: local, host: "127.0.0.1", allowHalfOpen: true });
  socket.end("something");
  assert.equal((await readAll(socket)).toString(), "you said something");
});

test("data that a peer sends just before closing reaches the local program", async (t) => {
  const { b, peerA } = await pair(t);
  await peerA.swarm.libp2p.handle("/x/quick", (stream) => {
    stream.send(Buffer.from("hello"));
    void stream.close();
  });
  await b.forward("/x/quick", tcp(0), { id: peerA.swarm.id, addresses: [] }, plain);
  for (let turn = 0; turn < 5; turn += 1) {
    assert.equal(String(await readAll(connect(portOf(b), "127.0.0.1"))), "hello");
  }
});

test("data that a peer sends together with the negotiation, and its end, reach the target", async (t) => {
  const { a, peerA, peerB } = await pair(t);
  const server = createServer({ allowHalfOpen: true });
  await a.listen("/x/lazy", tcp(await listening(t, server)), quiet);
  const line = (text: string) => Buffer.concat([Buffer.of(text.length + 1), Buffer.from(`${text}\n`)]);
  const whole = Buffer.concat([line("/multistream/1.0.0"), line("/x/lazy"), Buffer.from("hello")]);
  const taken = once(server, "connection");
  const [connection] = peerB.swarm.libp2p.getConnections(peerA.swarm.id);
  const { muxer } = connection as unknown as { readonly muxer: { createStream(): Promise<Stream> } };
  const stream = await muxer.createStream();
  stream.addEventListener("message", () => {});
  stream.send(whole);
  void stream.close();
  const target = (await taken)[0] as Socket;
  assert.equal(String(await readAll(target)), "hello");
  target.end();
});

test("the given addresses are dialled, whatever the peer store has learned", async (t) => {
  await using peerA = await startPeer();
  await using peerB = await startPeer();
  const [a, b] = [peerA, peerB].map(({ swarm }) => new P2p({ libp2p: swarm.libp2p, swarm, log: new NodeLog() }));
  assert.ok(a && b);
  t.after(() => Promise.all([a.stop(), b.stop()]));
  const port = await listening(
    t,
    createServer((socket) => socket.end("hello")),
  );
  await a.listen("/x/test", tcp(port), quiet);
  await b.forward("/x/test", tcp(0), { id: peerA.swarm.id, addresses: peerA.swarm.listenAddresses() }, plain);
  const lies = Array.from({ length: 128 }, (_, at) => tcp(at + 1));
  await peerB.swarm.libp2p.peerStore.merge(peerA.swarm.id, { multiaddrs: lies });
  assert.equal(String(await readAll(connect(portOf(b), "127.0.0.1"))), "hello");
});

test("an HTTP server is reached through the tunnel, many times at once", async (t) => {
  const nodes = await pair(t);
  const server = createHttpServer((request, response) => response.end(`answer to ${request.url}`));
  const local = await tunnel(nodes, await listening(t, server));
  const ask = async (path: string) => {
    const [response] = await once(get({ port: local, host: "127.0.0.1", path, agent: false }), "response");
    let text = "";
    for await (const piece of response) text += piece;
    return text;
  };
  const responses = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(`/${at}`)));
  assert.deepEqual(
    responses,
    Array.from({ length: 20 }, (_, at) => `answer to /${at}`),
  );
});

test("with reportPeer the target first reads the peer id", async (t) => {
  const nodes = await pair(t);
  const server = createServer((socket) => socket.on("error", () => {}).pipe(socket));
  const local = await tunnel(nodes, await listening(t, server), { custom: false, reportPeer: true });
  const socket = connect(local, "127.0.0.1");
  socket.end("hello");
  assert.equal((await readAll(socket)).toString(), `${nodes.peerB.swarm.id}\nhello`);
});

test("listeners and streams are listed, and closed by protocol, address or id", async (t) => {
  const nodes = await pair(t);
  const { a, b, peerA, peerB } = nodes;
  const port = await listening(
    t,
    createServer((socket) => socket.on("error", () => {}).pipe(socket)),
  );
  const local = await tunnel(nodes, port);
  const idA = `/p2p/${peerA.swarm.id}`;
  const idB = `/p2p/${peerB.swarm.id}`;
  const target = `/ip4/127.0.0.1/tcp/${port}`;
  const here = `/ip4/127.0.0.1/tcp/${local}`;
  const shown = (mounts: P2p) => mounts.list().map(({ listen, target: to }) => [listen, to]);
  assert.deepEqual(shown(a), [[idA, target]]);
  assert.deepEqual(shown(b), [[here, idA]]);

  const socket = connect(local, "127.0.0.1");
  socket.write("x");
  await once(socket, "data");
  const atA = a.streams()[0];
  const atB = b.streams()[0];
  assert.deepEqual([atA?.origin, atA?.target, atA?.protocol], [idB, target, "/x/test"]);
  const own = `/ip4/127.0.0.1/tcp/${socket.localPort}`;
  assert.deepEqual([atB?.origin, atB?.target, atB?.id], [own, idA, 0n]);

  // The listener is closed while the stream continues; then the stream is reset.
  assert.equal(b.close({ protocol: "/x/other" }), 0);
  assert.equal(b.close({ protocol: "/x/test", listen: tcp(local) }), 1);
  assert.deepEqual(b.list(), []);
  socket.write("y");
  assert.equal(String((await once(socket, "data"))[0]), "y");
  const gone = assert.rejects(once(socket, "close"), { code: "ECONNRESET" });
  b.closeStreams(99n);
  b.closeStreams(0n);
  await gone;
  await waitFor(() => a.streams().length === 0 && b.streams().length === 0);
  assert.equal(a.close({ target: tcp(port) }), 1);
});

test("a connection without a target, listener or peer is closed, and the next one is tried again", async (t) => {
  const nodes = await pair(t);
  const { a, b, peerA } = nodes;
  const port = await freePort();
  const dead = await tunnel(nodes, port);
  await b.forward("/x/nobody", tcp(0), { id: peerA.swarm.id, addresses: [] }, plain);
  const id = parsePeerId("12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5");
  await b.forward("/x/test", tcp(0), { id, addresses: [tcp(await freePort())] }, plain);
  const [, nobody, gone] = b.list().map(({ listen }) => Number(listen.split("/").at(-1)));
  for (const local of [dead, nobody as number, gone as number]) {
    assert.equal((await readAll(connect(local, "127.0.0.1"))).length, 0);
    const talking = connect(local, "127.0.0.1").on("error", () => {});
    talking.write("anybody there?");
    await new Promise((resolve) => talking.once("close", resolve));
  }
  await waitFor(() => a.streams().length === 0 && b.streams().length === 0);
  assert.deepEqual([a.list().length, b.list().length], [1, 3]);
  const server = createServer((socket) => socket.end("hello")).listen(port, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  assert.equal(String(await readAll(connect(dead, "127.0.0.1"))), "hello");
});

test("a peer that was met before is reached by its id alone", async (t) => {
  const { a, b, peerA, peerB } = await pair(t);
  const server = createServer((socket) => socket.end("hello"));
  await a.listen("/x/test", tcp(await listening(t, server)), quiet);
  await b.forward("/x/test", tcp(0), { id: peerA.swarm.id, addresses: [] }, plain);
  await peerB.swarm.disconnect(peerA.swarm.id, undefined);
  assert.equal(String(await readAll(connect(portOf(b), "127.0.0.1"))), "hello");
});

test("an unknown peer is looked up", async (t) => {
  await using peerA = await startPeer();
  await using peerB = await startPeer();
  const [a, b] = [peerA, peerB].map(({ swarm }) => new P2p({ libp2p: swarm.libp2p, swarm, log: new NodeLog() }));
  assert.ok(a && b);
  t.after(() => Promise.all([a.stop(), b.stop()]));
  peerB.swarm.findPeer = async () => peerA.swarm.listenAddresses();
  const server = createServer((socket) => socket.end("hello"));
  await a.listen("/x/test", tcp(await listening(t, server)), quiet);
  await b.forward("/x/test", tcp(0), { id: peerA.swarm.id, addresses: [] }, plain);
  assert.equal(String(await readAll(connect(portOf(b), "127.0.0.1"))), "hello");
});

test("a target that does not read slows the sender down, and gets everything when it reads", async (t) => {
  const nodes = await pair(t);
  const server = createServer();
  const taken = once(server, "connection");
  const local = await tunnel(
    nodes,
    await listening(
      t,
      server.on("connection", (socket) => socket.pause()),
    ),
  );
  const socket = connect(local, "127.0.0.1");
  t.after(() => socket.destroy());
  const target = (await taken)[0] as Socket;
  t.after(() => target.destroy());
  let got = 0;
  let sent = 0;
  // The buffers of the sockets and the window of the stream fill up, and then all sides stop
  // accepting data. Reading makes room again.
  for (let turn = 0; turn < 4; turn += 1) {
    sent += await fill(socket, 96);
    assert.ok(sent * mebibyte - got < 96 * mebibyte, `${sent} MiB were taken from the sender, ${got} bytes were read`);
    assert.deepEqual([nodes.a.streams().length, nodes.b.streams().length], [1, 1]);
    const enough = Math.min(got + 4 * mebibyte, sent * mebibyte);
    for await (const piece of target.iterator({ destroyOnReturn: false })) {
      got += (piece as Buffer).length;
      if (got >= enough) break;
    }
    target.pause();
  }
  socket.end();
  for await (const piece of target) got += (piece as Buffer).length;
  assert.equal(got, sent * mebibyte);
  if (!socket.resume().closed) await once(socket, "close");
  await waitFor(() => nodes.a.streams().length === 0 && nodes.b.streams().length === 0);
});

test("a stream that is reset before the target is connected leaves nothing behind", async (t) => {
  const { a, peerA, peerB } = await pair(t);
  const server = createServer((socket) => socket.on("error", () => {}).resume());
  let connections = 0;
  server.on("connection", () => (connections += 1));
  const port = await listening(t, server);
  await a.listen("/x/test", parseMultiaddr(`/dns4/localhost/tcp/${port}`), quiet);
  for (let at = 1; at <= 10; at += 1) {
    const stream = await peerB.swarm.libp2p.dialProtocol(peerA.swarm.id, "/x/test");
    // The other end may or may not exist by now.
    if (at % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
    stream.abort(new Error("gone"));
  }
  await waitFor(() => connections > 0 && a.streams().length === 0);
});

test("listeners opened while the node closes are refused, and closed", async () => {
  const { promise: merging, resolve: merge } = Promise.withResolvers<void>();
  const { promise: handling, resolve: handle } = Promise.withResolvers<void>();
  const protocols = new Set<string>();
  const libp2p = {
    peerId: "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5",
    peerStore: { merge: () => merging },
    handle: async (protocol: string) => {
      if (protocol === "/x/here") await handling;
      protocols.add(protocol);
    },
    unhandle: async (protocol: string) => void protocols.delete(protocol),
  };
  const mounts = new P2p({ libp2p, swarm: libp2p, log: new NodeLog() } as unknown as P2pDeps);
  await mounts.start();
  const peer = { id: libp2p.peerId, addresses: [tcp(4001)] } as unknown as NamedPeer;
  const begun = [mounts.forward("/x/there", tcp(0), peer, plain), mounts.listen("/x/here", tcp(1234), quiet)];
  const refused = begun.map((work) => assert.rejects(work, { message: "the node is closed" }));
  await mounts.stop();
  merge();
  handle();
  await Promise.all(refused);
  assert.deepEqual(mounts.list(), []);
  assert.deepEqual([...protocols], []);
  await waitFor(() => !process.getActiveResourcesInfo().includes("TCPServerWrap"));
});

test("refusals have the texts of go-ipfs", async (t) => {
  const { a, b, peerA } = await pair(t);
  const peer = { id: peerA.swarm.id, addresses: [] };
  const refused = (work: Promise<unknown>, message: string) => assert.rejects(work, { name: "NodeError", message });
  await refused(a.listen("/x/a", tcp(0), quiet), "port can not be 0");
  await refused(a.listen("/x/a", parseMultiaddr("/ip4/127.0.0.1/udp/0"), quiet), "port can not be 0");
  await refused(
    a.listen("/x/a", parseMultiaddr("/ip4/1.2.3.4"), quiet),
    "address does not contain tcp or udp protocol",
  );
  await refused(a.listen("/a/b", tcp(1234), quiet), "protocol name must be within '/x/' namespace");
  await refused(b.forward("/a", tcp(0), peer, plain), "protocol name must be within '/x/' namespace");
  await a.listen("/a/b", tcp(1234), { custom: true, reportPeer: false });
  await refused(a.listen("/a/b", tcp(1234), { custom: true, reportPeer: false }), "listener already registered");
  assert.ok(peerA.swarm.libp2p.getProtocols().includes("/x/"));
});

/**
 * Writes at most that many MiB, until no more are accepted for a while; resolves to the number of
 * bytes in flight.
 */
async function fill(socket: Socket, most: number): Promise<number> {
  const piece = Buffer.alloc(mebibyte);
  let sent = 0;
  while (sent < most && !socket.writableNeedDrain) {
    sent += 1;
    if (!socket.write(piece) && !(await drained(socket))) break;
  }
  return sent;
}

/** Resolves to false if it does not happen soon. */
async function drained(socket: Socket): Promise<boolean> {
  const soon = AbortSignal.timeout(500);
  return once(socket, "drain", { signal: soon }).then(
    () => true,
    () => false,
  );
}

async function waitFor(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 60_000;
  while (!isSo() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(isSo());
}

test("a local socket is listed, and closed, by the path that it was given", async (t) => {
  const { a, peerB } = await pair(t);
  const folder = await mkdtemp(join(tmpdir(), "modhost-p2p-"));
  t.after(() => rm(folder, { recursive: true }));
  const text = `/unix${folder}/a b.sock`;
  await a.forward("/x/test", parseMultiaddr(text), { id: peerB.swarm.id, addresses: [] }, plain);
  assert.deepEqual(
    a.list().map(({ listen }) => listen),
    [text],
  );
  assert.equal(a.close({ listen: parseMultiaddr(text) }), 1);
});
