import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { lpStream } from "@libp2p/utils";
import { autoNatProtocol } from "#node/network/swarm/autonat.ts";
import { parseMultiaddr, withPeer } from "#node/network/swarm/multiaddr.ts";
import type { LowLevelNode } from "#node/node/low_level_node.ts";
import type { ConfigPath } from "#node/storage/repo/schema.ts";
import { type RoutingNode, startNode, until } from "../network/kad/support.ts";
import { change } from "./support.ts";

let a: RoutingNode;
let b: RoutingNode;
before(async () => {
  [a, b] = await Promise.all([startNode(), startNode()]);
});
after(() => Promise.all([a?.[Symbol.asyncDispose](), b?.[Symbol.asyncDispose]()]));

const listening = () => a.network.swarm.listenAddresses().map(String);
const set = async (key: ConfigPath, value: unknown, node: LowLevelNode = a.node) =>
  assert.deepEqual(await change(node, key, value), []);
const portOf = (address: string | undefined) => Number(address?.split("/")[4]);
/** B comes to A, by an address of A. */
async function come(address = listening()[0]): Promise<void> {
  await b.network.swarm.connect(a.id, [parseMultiaddr(address as string)]);
}
const isConnected = () => b.network.swarm.connections(a.id).length > 0;
/** Each may have dialled the other. */
async function leave(): Promise<void> {
  const ends = [
    [a.network.swarm, b.id],
    [b.network.swarm, a.id],
  ] as const;
  await until(async () => {
    const open = ends.flatMap(([swarm, id]) => swarm.connections(id));
    await Promise.all(open.map((connection) => connection.abort(new Error("it leaves"))));
    return open.length === 0;
  });
}
/** Returns the peers that a node dials again whenever their connection is closed. */
const permanentPeers = async ({ network }: RoutingNode) => {
  const peers = await network.libp2p.peerStore.all();
  return peers
    .filter(({ tags }) => [...tags.keys()].some((tag) => tag.startsWith("keep-alive")))
    .map(({ id }) => String(id));
};
/**
 * Resolves to the response of A, in hexadecimal digits, when B requests a reservation at its relay.
 */
async function reserve(): Promise<string> {
  const stream = lpStream(await b.network.libp2p.dialProtocol(a.id, "/libp2p/circuit/relay/0.2.0/hop"));
  await stream.write(Buffer.from("0800", "hex"));
  return Buffer.from((await stream.read()).subarray()).toString("hex");
}
const speaks = (protocol: string) => a.network.libp2p.getProtocols().includes(protocol);

test("another listen address is opened in addition to the old one, whose connections go on", async () => {
  const [previous] = listening();
  await come();
  await set("Addresses.Swarm", ["/ip4/127.0.0.1/tcp/0/ws"]);
  assert.equal(listening().length, 1);
  assert.match(listening()[0] ?? "", /\/ws$/);
  assert.ok(isConnected(), "the connection of the previous address is there");
  await leave();
  await assert.rejects(b.network.swarm.connect(a.id, [parseMultiaddr(previous as string)]));
  await come();
  await leave();
  await set("Addresses.Swarm", ["/ip4/127.0.0.1/tcp/0"]);
});

test("a listen address that is taken is refused with the reason, the previous ones stay, and it is tried again", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => server.close());
  const { port } = server.address() as { port: number };
  const before = listening();
  const [waiting] = await change(a.node, "Addresses.Swarm", [`/ip4/127.0.0.1/tcp/${port}`, "/ip4/127.0.0.1/tcp/0/ws"]);
  assert.equal(waiting?.key, "Addresses.Swarm");
  assert.match(waiting?.reason ?? "", new RegExp(`/ip4/127.0.0.1/tcp/${port} is not listened on: .*EADDRINUSE`));
  assert.deepEqual(listening(), before);
  await new Promise((resolve) => server.close(resolve));
  assert.deepEqual((await a.node.repo.config.reread()).waiting, []);
  assert.equal(listening().length, 2);
  assert.ok(listening().some((address) => portOf(address) === port));
  // The new address has the same port, so the previous one must be closed first.
  await set("Addresses.Swarm", [`/ip4/0.0.0.0/tcp/${port}`]);
  assert.ok(listening().every((address) => portOf(address) === port));
  await set("Addresses.Swarm", ["/ip4/127.0.0.1/tcp/0"]);
});

test("a listen address of a transport that this node lacks is refused with the reason, unless it was there before", async () => {
  const before = listening();
  const old = "/ip4/127.0.0.1/udp/0/quic";
  const [waiting] = await change(a.node, "Addresses.Swarm", ["/ip4/127.0.0.1/tcp/0/ws", old]);
  assert.equal(waiting?.reason, `${old} is not listened on: draft-29 QUIC is not supported`);
  assert.deepEqual(listening(), before);
  const others = { config: { "Addresses.Swarm": [old] } };
  await using c = await startNode(others);
  await set("Addresses.Swarm", ["/ip4/127.0.0.1/tcp/0", old], c.node);
  assert.equal(c.network.swarm.listenAddresses().length, 1);
  await set("Addresses.Swarm", ["/ip4/127.0.0.1/tcp/0"]);
});

test("announced and hidden addresses are those of the configuration as it is now", async () => {
  const announced = () => a.network.swarm.announcedAddresses().map(String);
  const own = announced();
  await come();
  await set("Addresses.Announce", ["/dns4/node.example/tcp/4001"]);
  assert.deepEqual(announced(), ["/dns4/node.example/tcp/4001"]);
  await until(async () => (await b.network.swarm.addresses(a.id)).map(String).includes("/dns4/node.example/tcp/4001"));
  const gateway = "/dns4/gateway.example/tcp/443/tls/http";
  await set("Addresses.AppendAnnounce", [gateway]);
  assert.deepEqual(announced(), [gateway, "/dns4/node.example/tcp/4001"]);
  await set("Addresses.Announce", []);
  assert.deepEqual(announced().sort(), [gateway, ...own].sort());
  await until(async () => (await b.network.swarm.addresses(a.id)).map(String).includes(gateway));
  await set("Addresses.AppendAnnounce", null);
  assert.deepEqual(announced(), own);
  await set("Addresses.NoAnnounce", ["/ip4/127.0.0.0/ipcidr/8"]);
  assert.deepEqual(announced(), []);
  await set("Addresses.NoAnnounce", []);
  assert.deepEqual(announced(), own);
  await leave();
});

test("a transport that is switched off is neither listened on nor dialled, and both again when it is on", async () => {
  await set("Addresses.Swarm", ["/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/ws"]);
  assert.equal(listening().length, 2);
  await set("Swarm.Transports.Network.Websocket", false);
  assert.equal(listening().length, 1);
  await set("Swarm.Transports.Network.TCP", false);
  assert.deepEqual(listening(), []);
  await assert.rejects(a.network.swarm.connect(b.id, b.network.swarm.listenAddresses()));
  await set("Swarm.Transports.Network.Websocket", null);
  await set("Swarm.Transports.Network.TCP", null);
  assert.equal(listening().length, 2);
  await set("Addresses.Swarm", ["/ip4/127.0.0.1/tcp/0"]);
  await a.network.swarm.connect(b.id, b.network.swarm.listenAddresses());
  await leave();
});

test("holes are punched unless Swarm.EnableHolePunching is false, from the change on", async () => {
  assert.ok(speaks("/libp2p/dcutr"));
  await set("Swarm.EnableHolePunching", false);
  assert.ok(!speaks("/libp2p/dcutr"));
  assert.ok(speaks("/libp2p/circuit/relay/0.2.0/stop"));
  await set("Swarm.EnableHolePunching", null);
  assert.ok(speaks("/libp2p/dcutr"));
});

test("relays are used, and are not, from the change on", async () => {
  assert.equal(a.network.swarm.relayEnabled, true);
  assert.ok(speaks("/libp2p/circuit/relay/0.2.0/stop"));
  await set("Swarm.Transports.Network.Relay", false);
  assert.equal(a.network.swarm.relayEnabled, false);
  assert.ok(!speaks("/libp2p/circuit/relay/0.2.0/stop"));
  await set("Swarm.Transports.Network.Relay", null);
  await set("Swarm.DisableRelay", true);
  assert.ok(!speaks("/libp2p/circuit/relay/0.2.0/stop"));
  await set("Swarm.DisableRelay", false);
  assert.ok(speaks("/libp2p/circuit/relay/0.2.0/stop"));
});

test("the node becomes a relay with Swarm.EnableRelayHop, and looks for one with Swarm.EnableAutoRelay", async () => {
  await set("Swarm.EnableRelayHop", true);
  assert.ok(speaks("/libp2p/circuit/relay/0.2.0/hop"));
  await set("Swarm.EnableAutoRelay", true, b.node);
  await come();
  // B is reached through A.
  await until(() =>
    b.network.swarm.listenAddresses().some((address) => String(address).includes(`${a.id}/p2p-circuit`)),
  );
  await until(async () => (await permanentPeers(b)).length === 1);
  // The new limits of Swarm.RelayService apply at once: with no reservations, the relay refuses
  // everybody.
  await set("Swarm.RelayService.ReservationTTL", "20m");
  await set("Swarm.RelayService.ConnectionDataLimit", 1024);
  await set("Swarm.RelayService.ConnectionDurationLimit", "30s");
  await set("Swarm.RelayService.MaxReservations", 0);
  assert.match(await reserve(), /28c801$/, "the status 200: refused");
  await set("Swarm.RelayService.MaxReservations", null);
  assert.match(await reserve(), /22\w{2}08\w+1080082864$/, "a limit of time, one of 1,024 bytes, and the status 100");
  await set("Swarm.EnableAutoRelay", false, b.node);
  await until(() => b.network.swarm.listenAddresses().every((address) => !String(address).includes("p2p-circuit")));
  assert.deepEqual(await permanentPeers(b), []);
  await set("Swarm.EnableRelayHop", false);
  assert.ok(!speaks("/libp2p/circuit/relay/0.2.0/hop"));
  await leave();
});

test("others are told whether they can be reached as AutoNAT.ServiceMode says, and as often as AutoNAT.Throttle does", async () => {
  await set("AutoNAT.ServiceMode", "disabled");
  assert.ok(!speaks(autoNatProtocol));
  await set("AutoNAT.ServiceMode", "enabled");
  assert.ok(speaks(autoNatProtocol));
  await set("AutoNAT.Throttle", { GlobalLimit: 1, PeerLimit: 1, Interval: "1h" });
  await b.network.swarm.connect(a.id, a.network.swarm.listenAddresses());
  const ask = () => b.network.libp2p.dialProtocol(a.id, autoNatProtocol);
  const staysOpen = async () => {
    const stream = await ask();
    await sleep(300);
    assert.equal(stream.status, "open");
    stream.abort(new Error("enough"));
  };
  await staysOpen();
  const refused = await ask();
  await until(() => refused.status === "reset");
  await set("AutoNAT.Throttle", { GlobalLimit: 0, PeerLimit: 0 });
  await staysOpen();
  await leave();
});

test("bytes are counted, and are not, from the next stream on", async () => {
  const counted = () => a.network.swarm.bandwidth?.total().TotalIn;
  await set("Swarm.DisableBandwidthMetrics", true);
  assert.equal(counted(), undefined);
  await set("Swarm.DisableBandwidthMetrics", false);
  const before = counted() ?? 0;
  const made = await b.network.libp2p.dial(withPeer(parseMultiaddr(listening()[0] as string), a.id), { force: true });
  const ping = await made.newStream("/ipfs/ping/1.0.0");
  ping.send(new Uint8Array(32));
  await until(() => (counted() ?? 0) > before);
  await leave();
});

// This test is the last one, because its settings also apply to connections that the nodes open in
// the background.
test("new connections are secured and multiplexed as the configuration says now", async () => {
  const meet = async () => {
    const addresses = b.network.swarm.listenAddresses().map((address) => withPeer(address, b.id));
    const made = await a.network.libp2p.dial(addresses, { force: true });
    await made.close();
    return [made.encryption, made.multiplexer];
  };
  assert.deepEqual(await meet(), ["/noise", "/yamux/1.0.0"]);
  await set("Swarm.Transports.Security.Noise", 900);
  assert.equal((await meet())[0], "/tls/1.0.0");
  await set("Swarm.Transports.Security.Noise", null);
  await set("Swarm.Transports.Security.TLS", 5);
  assert.equal((await meet())[0], "/tls/1.0.0");
  await set("Swarm.Transports.Security.TLS", null);
  await set("Swarm.Transports.Multiplexers.Yamux", false);
  assert.deepEqual(await meet(), ["/noise", "/mplex/6.7.0"]);
  await set("Swarm.Transports.Multiplexers.Yamux", null);
  // Over noise, each side chooses the multiplexer by the preferences of the other, so this part
  // uses TLS.
  await set("Swarm.Transports.Security.TLS", 5);
  await set("Swarm.Transports.Multiplexers.Mplex", 1);
  assert.deepEqual(await meet(), ["/tls/1.0.0", "/mplex/6.7.0"]);
  await set("Swarm.Transports.Security.TLS", null);
  await set("Swarm.Transports.Multiplexers.Mplex", null);
});
