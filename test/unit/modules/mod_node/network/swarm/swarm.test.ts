import assert from "node:assert/strict";
import { test } from "node:test";
import type { IdentifyResult } from "@libp2p/interface";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { agentVersion } from "#node/util/agent_version.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/free_port.ts";
import { connectTo, next, startPeer, startStranger } from "./support.ts";

const nobody = parsePeerId("12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5");

test("connected peers know each other through identify", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const identified = next<IdentifyResult>(b, "peer:identify");
  const connection = await connectTo(a, b);
  assert.deepEqual([connection.encryption, connection.multiplexer], ["/noise", "/yamux/1.0.0"]);
  const facts = await a.swarm.peerInfo(b.swarm.id);
  assert.deepEqual(facts.addresses.map(String), b.swarm.listenAddresses().map(String));
  assert.deepEqual([facts.agentVersion, facts.protocolVersion], [agentVersion, "ipfs/0.1.0"]);
  assert.ok(facts.protocols.includes("/ipfs/ping/1.0.0") && facts.protocols.includes("/ipfs/id/push/1.0.0"));
  assert.ok(facts.publicKey?.equals(b.repo.identity.privateKey.publicKey));
  await identified;
  assert.deepEqual((await b.swarm.peerInfo(a.swarm.id)).agentVersion, agentVersion);
  assert.deepEqual(
    [a, b].map(({ swarm }) => swarm.connections().map(({ direction }) => direction)),
    [["outbound"], ["inbound"]],
  );
  assert.deepEqual(
    [...(await a.swarm.addressBook())].map(([id, known]) => [id, known.length]).sort(),
    [
      [a.swarm.id.toString(), 1],
      [b.swarm.id.toString(), 1],
    ].sort(),
  );
  assert.equal(await connectTo(a, b), connection);
});

test("a plain libp2p peer is connected both ways", async () => {
  await using a = await startPeer();
  await using stranger = await startStranger();
  const connection = await a.swarm.connect(
    stranger.peerId,
    stranger.getMultiaddrs().map((each) => each.decapsulate("/p2p")),
  );
  assert.equal(connection.encryption, "/noise");
  assert.match((await a.swarm.peerInfo(stranger.peerId)).agentVersion, /libp2p/);
  const left = new Promise((resolve) => stranger.addEventListener("peer:disconnect", resolve, { once: true }));
  await a.swarm.disconnect(stranger.peerId, undefined);
  await left;
  await stranger.dial(parseMultiaddr(`${a.swarm.listenAddresses()[0]}/p2p/${a.swarm.id}`));
  const { ping } = stranger.services as { ping: { ping(peer: unknown): Promise<number> } };
  assert.ok((await Promise.all([1, 2].map(() => ping.ping(a.swarm.id)))).every((time) => time >= 0));
  assert.deepEqual(
    a.swarm.connections(stranger.peerId).map(({ direction }) => direction),
    ["inbound"],
  );
});

test("pings share one stream, and return their round-trip times", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const connection = await connectTo(a, b);
  const echo = await a.swarm.ping.open(b.swarm.id);
  const times = [await echo.ping(), await echo.ping(), await echo.ping()];
  assert.ok(times.every((time) => time > 0));
  assert.equal(connection.streams.filter(({ protocol }) => protocol === "/ipfs/ping/1.0.0").length, 1);
  const left = AbortSignal.abort(new Error("left"));
  await assert.rejects(echo.ping(left), { message: "left" });
  echo.close();
  await assert.rejects(echo.ping());
});

test("a wrong ping echo is detected", async () => {
  await using a = await startPeer();
  await using stranger = await startStranger();
  await stranger.unhandle("/ipfs/ping/1.0.0");
  await stranger.handle("/ipfs/ping/1.0.0", (stream) => {
    stream.addEventListener("message", () => stream.send(new Uint8Array(32)));
  });
  await a.swarm.connect(
    stranger.peerId,
    stranger.getMultiaddrs().map((each) => each.decapsulate("/p2p")),
  );
  const echo = await a.swarm.ping.open(stranger.peerId);
  await assert.rejects(echo.ping(), { message: "ping packet was incorrect" });
  echo.close();
});

test("connections are closed by peer id or by address", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const [address] = b.swarm.listenAddresses();
  await assert.rejects(a.swarm.disconnect(b.swarm.id, undefined), { message: "not connected" });
  const left = next(b, "peer:disconnect");
  await connectTo(a, b);
  await assert.rejects(a.swarm.disconnect(b.swarm.id, parseMultiaddr("/ip4/127.0.0.1/tcp/1")), {
    message: "conn not found",
  });
  await a.swarm.disconnect(b.swarm.id, address);
  assert.deepEqual(a.swarm.connections(), []);
  await left;
  await connectTo(a, b);
  await a.swarm.disconnect(b.swarm.id, undefined);
  assert.deepEqual(a.swarm.connections(), []);
});

test("a dial that fails says why, address by address", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  await assert.rejects(a.swarm.connect(a.swarm.id), { message: "dial to self attempted" });
  const port = await freePort();
  await assert.rejects(a.swarm.connect(nobody, [parseMultiaddr(`/ip4/127.0.0.1/tcp/${port}`)]), {
    message: `failed to dial ${nobody}:\n  * [/ip4/127.0.0.1/tcp/${port}] dial tcp4 127.0.0.1:${port}: connect: connection refused`,
  });
  const error = await a.swarm.connect(nobody, b.swarm.listenAddresses()).catch(String);
  assert.match(
    String(error),
    /\* \[\/ip4\/127\.0\.0\.1\/tcp\/\d+\] failed to negotiate security protocol: peer id mismatch/,
  );
  const other = parsePeerId("12D3KooWE15XmWGD8H4eYXvD96ddfnHuZjJW4g8rnz7z7ZJupkUb");
  await assert.rejects(a.swarm.connect(other, [parseMultiaddr("/ip4/127.0.0.1/udp/1")]), {
    message: `failed to dial ${other}: no good addresses`,
  });
});

test("a peer without known addresses is looked up through routing", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  a.swarm.findPeer = async (id) =>
    id.equals(b.swarm.id) ? b.swarm.listenAddresses() : Promise.reject(new Error("routing: not found"));
  await a.swarm.connect(b.swarm.id);
  assert.equal(a.swarm.connections(b.swarm.id).length, 1);
  await assert.rejects(a.swarm.connect(nobody), { message: "routing: not found" });
});

test("a peer that was met before is reached by its id alone, over and over", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  await connectTo(a, b);
  for (let round = 0; round < 10; round += 1) {
    const [from, to] = round % 2 === 0 ? [a, b] : [b, a];
    const previous = to.swarm.connections(from.swarm.id);
    await from.swarm.disconnect(to.swarm.id, undefined);
    await from.swarm.connect(to.swarm.id);
    assert.equal(from.swarm.connections(to.swarm.id).length, 1);
    // The other node may notice the new connection before the end of the previous one, so it always
    // has one.
    await eventually("only the new connection exists", () => {
      const [first, ...others] = to.swarm.connections(from.swarm.id);
      return first !== undefined && others.length === 0 && !previous.includes(first);
    });
  }
});

test("a peer that has moved is looked up, and if that fails the error names its old address", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const { peerStore } = a.swarm.libp2p;
  const port = await freePort();
  await peerStore.merge(b.swarm.id, { multiaddrs: [parseMultiaddr(`/ip4/127.0.0.1/tcp/${port}`)] });
  const message = `failed to dial ${b.swarm.id}:\n  * [/ip4/127.0.0.1/tcp/${port}] dial tcp4 127.0.0.1:${port}: connect: connection refused`;
  a.swarm.findPeer = () => Promise.reject(new Error("routing: not found"));
  await assert.rejects(a.swarm.connect(b.swarm.id), { message });
  a.swarm.findPeer = async () => [parseMultiaddr(`/ip4/127.0.0.1/tcp/${port}`)];
  await assert.rejects(a.swarm.connect(b.swarm.id), { message });
  a.swarm.findPeer = async () => b.swarm.listenAddresses();
  await a.swarm.connect(b.swarm.id);
});

test("a given address is dialled first, whatever other addresses are known", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const lies = Array.from({ length: 100 }, (_, at) => parseMultiaddr(`/ip4/127.0.0.1/tcp/${at + 1}`));
  await a.swarm.libp2p.peerStore.merge(b.swarm.id, { multiaddrs: lies });
  await connectTo(a, b);
});

test("filtered ranges are neither dialled nor accepted", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  a.swarm.filters.add("/ip4/127.0.0.0/ipcidr/8");
  await assert.rejects(connectTo(a, b), { message: `failed to dial ${b.swarm.id}: no good addresses` });
  await assert.rejects(connectTo(b, a), /failed to dial/);
  assert.deepEqual(
    [a, b].flatMap(({ swarm }) => swarm.connections()),
    [],
  );
  a.swarm.filters.clear();
  await connectTo(b, a);
});

test("configured ranges are filtered from the start", async () => {
  await using a = await startPeer({ config: { "Swarm.AddrFilters": ["/ip4/127.0.0.0/ipcidr/8"] } });
  await using b = await startPeer();
  assert.deepEqual(a.swarm.filters.list(), ["/ip4/127.0.0.0/ipcidr/8"]);
  await assert.rejects(connectTo(b, a));
});

test("only addresses that the configuration names are announced", async () => {
  await using reported = await startPeer({ config: { "Addresses.Announce": ["/dns4/node.example/tcp/4001"] } });
  assert.deepEqual(reported.swarm.announcedAddresses().map(String), ["/dns4/node.example/tcp/4001"]);
  await using hidden = await startPeer({ config: { "Addresses.NoAnnounce": ["/ip4/127.0.0.0/ipcidr/8"] } });
  assert.equal(hidden.swarm.listenAddresses().length, 1);
  assert.deepEqual(hidden.swarm.announcedAddresses(), []);
});

test("an address that cannot be listened on is reported, and the others are used", async () => {
  const swarm = ["/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic", "/ip4/192.0.2.1/tcp/0"];
  await using a = await startPeer({ config: { "Addresses.Swarm": swarm } });
  assert.equal(a.swarm.listenAddresses().length, 1);
  assert.equal(a.notices.length, 2);
  assert.match(a.notices[0] ?? "", /^\/ip4\/127\.0\.0\.1\/udp\/0\/quic is not listened on: /);
  assert.match(a.notices[1] ?? "", /^\/ip4\/192\.0\.2\.1\/tcp\/0 is not listened on: .*EADDRNOTAVAIL/);
  assert.deepEqual(a.logged, []);
});

test("a node that listens nowhere still works", async () => {
  await using a = await startPeer({ config: { "Addresses.Swarm": ["/ip4/192.0.2.1/tcp/0"] } });
  assert.deepEqual(a.logged, ["error the node listens on no address: no other node can reach it"]);
  await using b = await startPeer();
  await connectTo(a, b);
});

test("websockets carry connections", async () => {
  await using a = await startPeer();
  await using b = await startPeer({ config: { "Addresses.Swarm": ["/ip4/127.0.0.1/tcp/0/ws"] } });
  const connection = await connectTo(a, b);
  assert.match(connection.remoteAddr.toString(), /\/ws\/p2p\//);
});

test("transports, encryption and multiplexers follow the configuration", async () => {
  await using a = await startPeer({
    config: { "Swarm.Transports.Security.TLS": 10, "Swarm.Transports.Multiplexers.Yamux": false },
  });
  await using b = await startPeer();
  const connection = await connectTo(a, b);
  assert.deepEqual([connection.encryption, connection.multiplexer], ["/tls/1.0.0", "/mplex/6.7.0"]);
  await using silent = await startPeer({ config: { "Swarm.Transports.Network.TCP": false } });
  assert.deepEqual(silent.swarm.listenAddresses(), []);
  assert.equal(silent.notices.length, 1);
});

test("an invalid configuration opens nothing", async () => {
  const refused = (config: Record<string, unknown>, message: string) =>
    assert.rejects(startPeer({ config }), { message });
  await refused({ "Addresses.Swarm": ["/ip4/1.2.3"] }, "failure to parse config.Addresses.Swarm: [/ip4/1.2.3]");
  await refused({ "Swarm.AddrFilters": ["x"] }, "incorrectly formatted address filter in config: x");
  await refused({ "Swarm.ConnMgr.Type": "odd" }, 'unrecognized ConnMgr.Type: "odd"');
  await refused({ "Swarm.ConnMgr.GracePeriod": "x" }, 'parsing Swarm.ConnMgr.GracePeriod: time: invalid duration "x"');
});
