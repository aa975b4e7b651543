import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, connect as dial, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { createNode, type IdResult, type Node, type PubsubMessage, type QueryEvent } from "modhost/node";
import { CID } from "multiformats/cid";
import { eventually } from "#test/support/eventually.ts";

const MISSING = "bafkreifjjcie6lypi6ny7amxnfftagclbuxndqonfipmb64f2km2devei4";
const OFFLINE = { message: "this command must be run in online mode. Try running 'ipfs daemon' first" };

let folder: string;
let a: Node;
let b: Node;
let idA: IdResult;
let idB: IdResult;

const open = (name: string, options: { offline?: boolean } = {}): Promise<Node> =>
  createNode({ repo: join(folder, name), pubsub: true, namesOverPubsub: true, ...options });

const until = (holds: () => Promise<boolean>) => eventually(String(holds), holds);

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-api-"));
  [a, b] = await Promise.all([open("a"), open("b")]);
  for (const node of [a, b]) {
    await node.lowLevel.repo.config.set("Experimental.Libp2pStreamMounting", () => true);
    await node.goOnline();
  }
  [idA, idB] = await Promise.all([a.id(), b.id()]);
  const [address] = idB.addresses ?? [];
  assert.ok(address !== undefined);
  assert.deepEqual(await a.swarm.connect(address), [`connect ${idB.id} success`]);
});
after(async () => {
  await Promise.all([a, b].map((node) => node.close()));
  await rm(folder, { recursive: true, force: true });
});

test("a peer reports the same about itself to peers as to local programs", async () => {
  const requests = await a.id({ peerId: idB.id });
  assert.ok(requests.id.equals(idB.id));
  assert.deepEqual([requests.publicKey, requests.agentVersion], [idB.publicKey, idB.agentVersion]);
  assert.deepEqual(requests.addresses?.map(String), idB.addresses?.map(String));
  assert.deepEqual(requests.protocols, idB.protocols);
  assert.deepEqual((await a.id({ peerId: String(idB.id) })).publicKey, idB.publicKey);
  await assert.rejects(a.id({ peerId: "nobody" }), { message: "invalid peer id" });
});

test("both ends list a connection, with details on request", async () => {
  const [peer, ...others] = await a.swarm.peers();
  assert.deepEqual(others, []);
  assert.ok(peer !== undefined);
  assert.equal(`${peer.addr}/p2p/${peer.peer}`, String(idB.addresses?.[0]));
  assert.deepEqual([peer.latency, peer.streams, peer.direction], ["", null, undefined]);
  const [verbose] = await a.swarm.peers({ verbose: true });
  assert.equal(verbose?.direction, "outbound");
  assert.ok(Array.isArray(verbose.streams));
  const [back] = await b.swarm.peers({ direction: true });
  assert.deepEqual([back?.direction, String(back?.peer)], ["inbound", String(idA.id)]);
  const known = (await a.swarm.addrs()).find(({ id }) => id.equals(idB.id));
  assert.deepEqual(known?.addrs.map(String), (await b.swarm.localAddrs()).map(String));
  assert.deepEqual((await b.swarm.localAddrs({ id: true })).map(String), idB.addresses?.map(String));
});

test("pings of a peer report their round-trip times", async () => {
  const reported = [];
  for await (const one of a.ping(idB.id, { count: 1 })) reported.push(one);
  assert.equal(reported[0]?.text, `PING ${idB.id}.`);
  assert.deepEqual([reported[1]?.success, reported[1]?.text], [true, ""]);
  assert.ok((reported[1]?.time ?? 0) > 0);
  assert.match(reported[2]?.text ?? "", /^Average latency: \d+\.\d\dms$/);
  await assert.rejects(Array.fromAsync(a.ping(idA.id)), { message: "error: can't ping self" });
});

test("messages reach the handlers of a topic until they unsubscribe", async () => {
  const heard: PubsubMessage[] = [];
  const failed: [string, boolean][] = [];
  const handler = (message: PubsubMessage) => {
    heard.push(message);
    if (heard.length === 1) throw new Error("odd");
  };
  const onError = (error: Error, fatal: boolean) => void failed.push([error.message, fatal]);
  await b.pubsub.subscribe("news", handler, { onError });
  await assert.rejects(b.pubsub.subscribe("news", handler), {
    message: "Already subscribed to news with this handler",
  });
  assert.deepEqual(await b.pubsub.ls(), ["news"]);
  await until(async () => (await a.pubsub.peers("news")).includes(String(idB.id)));
  await a.pubsub.publish("news", "one");
  await a.pubsub.publish("news", Buffer.from("two"));
  await until(async () => heard.length === 2);
  assert.deepEqual(failed, [["odd", false]]);
  const [first, second] = heard;
  assert.ok(first?.type === "signed" && second?.type === "signed");
  assert.deepEqual([first.topic, Buffer.from(first.data).toString()], ["news", "one"]);
  assert.ok(first.from.equals(idA.id));
  assert.ok(second.sequenceNumber !== first.sequenceNumber);
  await b.pubsub.unsubscribe("news");
  assert.deepEqual(await b.pubsub.ls(), []);

  const leave = new AbortController();
  await b.pubsub.subscribe("news", { handleEvent: handler }, { signal: leave.signal });
  leave.abort();
  await until(async () => (await b.pubsub.ls()).length === 0);
});

test("the fetch of a block that is unwanted fails as not found", async () => {
  const wanted = a.block.get(MISSING);
  const refused = assert.rejects(wanted, { code: "BLOCK_NOT_FOUND" });
  await until(async () => (await a.bitswap.wantlist()).length === 1);
  assert.deepEqual((await a.bitswap.wantlist()).map(String), [MISSING]);
  await until(async () => (await b.bitswap.wantlistForPeer(idA.id)).length === 1);
  await a.bitswap.unwant(CID.parse(MISSING));
  await refused;
  assert.deepEqual(await a.bitswap.wantlistForPeer(idA.id), []);
});

test("exchanged blocks are counted", async () => {
  const cid = await b.block.put("Hello");
  assert.equal(Buffer.from(await a.block.get(cid)).toString(), "Hello");
  const stat = await a.bitswap.stat();
  assert.deepEqual([stat.blocksReceived, stat.dataReceived, stat.messagesReceived], [1n, 5n, undefined]);
  assert.deepEqual(stat.peers.map(String), [String(idB.id)]);
  assert.ok(((await a.stats.bitswap({ details: true })).messagesReceived ?? 0n) > 0n);
  const ledger = await a.bitswap.ledger(idB.id);
  assert.deepEqual([ledger.recv, ledger.sent, ledger.exchanged], [5n, 0n, 1n]);
  const [total, ...more] = await Array.fromAsync(a.stats.bw());
  assert.deepEqual(more, []);
  assert.ok((total?.totalIn ?? 0n) > 0n);
  assert.ok(((await Array.fromAsync(a.stats.bw({ peer: idB.id })))[0]?.totalIn ?? 0n) > 0n);
  const two = [];
  for await (const one of a.stats.bw({ poll: true, interval: "10ms" })) if (two.push(one) === 2) break;
  assert.equal(two.length, 2);
});

test("searches in the routing system report events under the names of the clients", async () => {
  await until(async () => {
    const tables = await Array.fromAsync(a.stats.dht("lan"));
    return tables[0]?.buckets.some(({ peers }) => peers.some(({ id }) => id.equals(idB.id))) === true;
  });
  const named = (events: readonly QueryEvent[], name: QueryEvent["name"]) => events.find((one) => one.name === name);
  const near = await Array.fromAsync(a.dht.query(idB.id));
  const last = named(near, "FINAL_PEER");
  assert.ok(last?.name === "FINAL_PEER" && last.type === 2);
  assert.ok(last.peer.id.equals(idB.id));
  const response = named(near, "PEER_RESPONSE");
  assert.ok(response?.name === "PEER_RESPONSE" && response.from.equals(idB.id));

  const [found] = await Array.fromAsync(a.routing.findPeer(idB.id));
  assert.ok(found?.name === "FINAL_PEER");
  assert.deepEqual(found.peer.multiaddrs.map(String), (await b.swarm.localAddrs()).map(String));
  const [raw] = await Array.fromAsync(a.dht.events.findPeer(String(idB.id)));
  assert.deepEqual([raw?.type, raw?.responses?.map(({ id }) => String(id))], [2, [String(idB.id)]]);

  const cid = await a.block.put("mine");
  await Array.fromAsync(a.routing.provide(cid));
  const [event] = (await Array.fromAsync(b.dht.findProvs(cid, { numProviders: 1 }))).filter(
    (one) => one.name === "PROVIDER",
  );
  assert.ok(event?.name === "PROVIDER" && event.providers[0]?.id.equals(idA.id));
  await assert.rejects(Array.fromAsync(a.dht.provide(MISSING)), {
    message: `block ${MISSING} not found locally, cannot provide`,
  });
  await assert.rejects(Array.fromAsync(a.dht.get("/odd/key")), { message: "invalid key" });
});

test("a published name is resolved by others, and the default name is the node's own", async () => {
  const path = `/ipfs/${await a.block.put("published")}`;
  const { name, value } = await a.name.publish(path, { lifetime: "1h" });
  assert.deepEqual([value, (await a.name.publish(path, { ipnsBase: "b58mh" })).name], [path, String(idA.id)]);
  assert.match(name, /^k51/);
  assert.deepEqual(await Array.fromAsync(a.name.resolve()), [path]);
  assert.deepEqual(await Array.fromAsync(b.name.resolve(idA.id, { nocache: true, dhtRecordCount: 1, stream: false })), [
    path,
  ]);
  assert.deepEqual(await b.name.pubsub.state(), { enabled: true });
  assert.deepEqual(await b.name.pubsub.subs(), [`/ipns/${name}`]);
  assert.deepEqual(await b.name.pubsub.cancel(`/ipns/${name}`), { canceled: true });
  assert.deepEqual(await b.name.pubsub.cancel(idA.id), { canceled: false });
  await assert.rejects(a.name.publish(path, { lifetime: "long" }), { message: /^error parsing lifetime option: / });
});

test("connections are forwarded to a peer, and listed while they are open", async (t) => {
  const echo: Server = createServer((socket) => void socket.pipe(socket));
  echo.listen(0, "127.0.0.1");
  await once(echo, "listening");
  t.after(() => echo.close());
  const { port } = echo.address() as { port: number };
  await b.p2p.listen("/x/echo", `/ip4/127.0.0.1/tcp/${port}`);
  await a.p2p.forward("/x/echo", "/ip4/127.0.0.1/tcp/0", `/p2p/${idB.id}`);
  const [listener] = await a.p2p.ls();
  assert.deepEqual([listener?.protocol, listener?.targetAddress], ["/x/echo", `/p2p/${idB.id}`]);
  const socket = dial(Number(listener?.listenAddress.split("/").at(-1)), "127.0.0.1");
  socket.write("Hello");
  await once(socket, "readable");
  const [stream] = await a.p2p.stream.ls();
  assert.equal(stream?.protocol, "/x/echo");
  socket.end();
  assert.equal(await text(socket), "Hello");
  await assert.rejects(a.p2p.stream.close("one"), { message: 'strconv.ParseUint: parsing "one": invalid syntax' });
  await assert.rejects(a.p2p.close(), { message: "no matching options given" });
  assert.equal(await a.p2p.close({ protocol: "/x/echo" }), 1);
  assert.equal(await b.p2p.close({ all: true }), 1);
});

test("the bootstrap list is changed and returned, on request as the configuration has it", async () => {
  const written = `/ip4/127.0.0.1/tcp/4001/ipfs/${idB.id}`;
  const address = `/ip4/127.0.0.1/tcp/4001/p2p/${idB.id}`;
  const { Peers, texts } = await a.bootstrap.add(written, { texts: true });
  assert.deepEqual([Peers.map(String), texts], [[address], [written]]);
  assert.deepEqual((await a.bootstrap.list()).Peers.map(String), [address]);
  assert.deepEqual((await a.bootstrap.rm(Peers)).Peers.map(String), [address]);
  assert.ok((await a.bootstrap.reset()).Peers.length > 0);
  await a.bootstrap.clear();
  assert.deepEqual((await a.bootstrap.list()).Peers, []);
});

test("filtered address ranges are refused until they are removed", async () => {
  const range = "/ip4/192.0.2.0/ipcidr/24";
  assert.deepEqual(await a.swarm.filters.add([range, range]), [range]);
  assert.deepEqual(await a.swarm.filters.list(), [range]);
  assert.deepEqual(await a.swarm.filters.rm(range), [range]);
  assert.deepEqual(await a.swarm.filters.list(), []);
});

test("each method fails as offline without a network", async () => {
  await using node = await open("offline", { offline: true });
  const { addresses, protocols } = await node.id();
  assert.deepEqual([addresses, protocols], [null, null]);
  assert.deepEqual([await node.isOnline(), await a.isOnline()], [false, true]);
  await assert.rejects(node.id({ peerId: idB.id }), {
    message: /^'ipfs id' currently cannot query information on remote/,
  });
  await assert.rejects(node.swarm.peers(), {
    message: "this action must be run in online mode, try running 'ipfs daemon' first",
  });
  await assert.rejects(node.bitswap.stat(), { ...OFFLINE, kind: "client" });
  await assert.rejects(Array.fromAsync(node.dht.findPeer(idB.id)), OFFLINE);
  await assert.rejects(Array.fromAsync(node.stats.bw()), OFFLINE);
  await assert.rejects(
    node.pubsub.subscribe("news", () => {}),
    { code: "PUBSUB_OFF" },
  );
  await assert.rejects(node.name.publish("/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"), {
    message: "can't publish while offline: pass `--allow-offline` to override",
  });
});
