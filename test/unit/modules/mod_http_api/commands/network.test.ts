import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "./support.ts";

const nobody = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
const onlineOnly = "this command must be run in online mode. Try running 'ipfs daemon' first";
const actionOnly = "this action must be run in online mode, try running 'ipfs daemon' first";

interface Identity {
  readonly ID: string;
  readonly PublicKey: string;
  readonly Addresses: readonly string[] | null;
  readonly AgentVersion: string;
  readonly ProtocolVersion: string;
  readonly Protocols: readonly string[] | null;
}

interface Peer {
  readonly Addr: string;
  readonly Peer: string;
  readonly Latency: string;
  readonly Muxer: string;
  readonly Direction: number;
  readonly Streams: readonly { readonly Protocol: string }[] | null;
}

let a: RpcHost;
let b: RpcHost;
let offline: RpcHost;
let idB: string;
let swarmB: string;

before(async () => {
  [a, b, offline] = await Promise.all([
    startRpc({ node_offline: false }),
    startRpc({ node_offline: false, node_agent: "kubo/0.43.0" }),
    startRpc(),
  ]);
  const { ID, Addresses } = await b.value<Identity>("id");
  idB = ID;
  swarmB = Addresses?.[0] as string;
});
after(() => Promise.all([a, b, offline].map((host) => host.stop())));

const strings = async (path: string, host = a) => (await host.value<{ Strings: string[] | null }>(path)).Strings;
const peers = async (query = "", host = a) => (await host.value<{ Peers: Peer[] | null }>(`swarm/peers${query}`)).Peers;
const connect = () => strings(`swarm/connect?arg=${swarmB}`);
const disconnect = () => strings(`swarm/disconnect?arg=/p2p/${idB}`);

test("the node reports its identity and addresses", async () => {
  const own = await b.value<Identity>("id");
  assert.match(swarmB, new RegExp(`^/ip4/127\\.0\\.0\\.1/tcp/\\d+/p2p/${idB}$`));
  assert.equal(own.ProtocolVersion, "ipfs/0.1.0");
  assert.deepEqual(own.Protocols, [...(own.Protocols ?? [])].sort());
  for (const protocol of ["/ipfs/bitswap/1.2.0", "/ipfs/id/1.0.0", "/ipfs/lan/kad/1.0.0", "/ipfs/ping/1.0.0"]) {
    assert.ok(own.Protocols?.includes(protocol), protocol);
  }
  const address = swarmB.slice(0, swarmB.indexOf("/p2p/"));
  assert.deepEqual(await strings("swarm/addrs/listen", b), [address, "/p2p-circuit"]);
  assert.deepEqual(await strings("swarm/addrs/local", b), [address]);
  assert.deepEqual(await strings("swarm/addrs/local?id=true", b), [swarmB]);
  assert.deepEqual((await b.value("swarm/addrs")).Addrs, { [idB]: [address] });
  assert.equal((await b.call("swarm/addrs?encoding=text")).text, `${idB} (1)\n\t${address}\n`);
});

test("connections are opened, listed and closed", async () => {
  assert.equal(await peers(), null);
  assert.deepEqual(await connect(), [`connect ${idB} success`]);
  const [plain] = (await peers()) as [Peer];
  assert.deepEqual(plain, {
    Addr: swarmB.slice(0, swarmB.indexOf("/p2p/")),
    Peer: idB,
    Latency: "",
    Muxer: "",
    Direction: 0,
    Streams: null,
  });
  const [whole] = (await peers("?verbose=true")) as [Peer];
  assert.deepEqual([whole.Latency, whole.Direction, Array.isArray(whole.Streams)], ["n/a", 2, true]);
  const { ID } = await a.value<Identity>("id");
  const theirs = await peers("?direction=true", b);
  assert.deepEqual(
    theirs?.map(({ Peer, Direction }) => [Peer, Direction]),
    [[ID, 1]],
  );
  const line = (await a.call("swarm/peers?encoding=text&latency=true&direction=true")).text;
  assert.equal(line, `${swarmB} n/a outbound\n`);
  assert.deepEqual(await disconnect(), [`disconnect ${idB} success`]);
  assert.deepEqual(await disconnect(), [`disconnect ${idB} failure: not connected`]);
  assert.deepEqual(await strings(`swarm/connect?arg=/p2p/${idB}`), [`connect ${idB} success`]);
  assert.deepEqual(await strings(`swarm/disconnect?arg=${swarmB}&arg=${swarmB.replace("/p2p/", "/ipfs/")}`), [
    `disconnect ${idB} success`,
    `disconnect ${idB} failure: conn not found`,
  ]);
});

test("another peer reports its identity", async () => {
  await connect();
  const own = await b.value<Identity>("id");
  assert.equal(own.AgentVersion, "kubo/0.43.0", "by the option node_agent");
  assert.deepEqual(await a.value(`id?arg=${idB}`), own);
  const text = (await a.call(`id?arg=${idB}&encoding=text&format=<id> <aver> <pver>\\n`)).text;
  assert.equal(text, `${idB} ${own.AgentVersion} ipfs/0.1.0\n`);
  assert.deepEqual(await a.failure("id?arg=x"), [500, "invalid peer id"]);
  const [status, reason] = await a.failure(`id?arg=${nobody}`);
  assert.equal(status, 500);
  assert.match(
    String(reason),
    /^routing: not found$|^failed to find any peer in table$|cannot query information on remote/,
  );
});

test("ping sends echoes to a peer, one per second", async () => {
  const { status, lines } = await a.call(`ping?arg=${swarmB}&count=2`);
  assert.equal(status, 200);
  const [first, one, two, last, ...more] = lines as { Success: boolean; Time: number; Text: string }[];
  assert.deepEqual(first, { Success: true, Time: 0, Text: `PING ${idB}.` });
  for (const echo of [one, two]) assert.ok(echo?.Success === true && echo.Text === "" && echo.Time > 0);
  const average = (((one?.Time ?? 0) + (two?.Time ?? 0)) / 2e6).toFixed(2);
  assert.deepEqual(last, { Success: true, Time: 0, Text: `Average latency: ${average}ms` });
  assert.deepEqual(more, []);
  assert.match((await peers("?latency=true"))?.[0]?.Latency ?? "", /^[\d.]+(?:µs|ms|s)$/);
  const text = (await a.call(`ping?arg=${idB}&n=1&encoding=text`)).text.split("\n");
  assert.match(text[1] ?? "", /^Pong received: time=\d+\.\d\d ms$/);
});

test("failed echoes have a reason", async () => {
  const { ID } = await a.value<Identity>("id");
  assert.deepEqual(await a.failure(`ping?arg=${ID}`), [500, "error: can't ping self"]);
  assert.deepEqual(await a.failure(`ping?arg=${idB}&count=0`), [500, "ping count must be greater than 0, was 0"]);
  assert.deepEqual(await a.failure("ping?arg=x"), [
    500,
    "failed to parse peer address 'x': failed to parse peer ID: cid too short",
  ]);
  assert.deepEqual(await a.failure("ping?arg=/ip4/127.0.0.1/tcp/1"), [
    500,
    "failed to parse peer address '/ip4/127.0.0.1/tcp/1': invalid p2p multiaddr",
  ]);
  const { lines } = await a.call(`ping?arg=/ip4/127.0.0.1/tcp/1/p2p/${nobody}&count=1`);
  assert.deepEqual(lines, [
    { Success: true, Time: 0, Text: `PING ${nobody}.` },
    {
      Success: false,
      Time: 0,
      Text: `Ping error: failed to dial ${nobody}:\n  * [/ip4/127.0.0.1/tcp/1] dial tcp4 127.0.0.1:1: connect: connection refused`,
    },
  ]);
});

test("peers that cannot be dialled are reported with the reason", async () => {
  assert.deepEqual(await a.failure("swarm/connect?arg=x"), [500, 'failed to parse multiaddr "x": must begin with /']);
  assert.deepEqual(await a.failure("swarm/connect?arg=/ip4/127.0.0.1/tcp/1"), [
    500,
    "found no ipfs peers at /ip4/127.0.0.1/tcp/1",
  ]);
  const { ID } = await a.value<Identity>("id");
  assert.deepEqual(await a.failure(`swarm/connect?arg=/p2p/${ID}`), [
    500,
    `connect ${ID} failure: dial to self attempted`,
  ]);
});

test("refused address ranges apply at once, and are in the configuration", async () => {
  await disconnect();
  const range = "/ip4/127.0.0.9/ipcidr/8";
  assert.equal(await strings("swarm/filters"), null);
  assert.deepEqual(await strings(`swarm/filters/add?arg=${range}&arg=/ip4/192.0.2.1/ipcidr/32&arg=${range}`), [
    range,
    "/ip4/192.0.2.1/ipcidr/32",
  ]);
  assert.deepEqual(await strings("swarm/filters"), ["/ip4/127.0.0.0/ipcidr/8", "/ip4/192.0.2.1/ipcidr/32"]);
  assert.deepEqual((await a.value("config?arg=Swarm.AddrFilters")).Value, [range, "/ip4/192.0.2.1/ipcidr/32"]);
  assert.deepEqual(await a.failure(`swarm/connect?arg=${swarmB}`), [
    500,
    `connect ${idB} failure: failed to dial ${idB}: no good addresses`,
  ]);
  assert.deepEqual(await a.failure("swarm/filters/add?arg=/ip4/1.2.3.4/ipcidr/33"), [
    500,
    "invalid CIDR address: 1.2.3.4/33",
  ]);
  assert.deepEqual(await strings("swarm/filters/rm?arg=/ip4/127.0.0.0/ipcidr/8"), []);
  assert.deepEqual(await strings("swarm/filters"), ["/ip4/192.0.2.1/ipcidr/32"]);
  assert.deepEqual(await strings("swarm/filters/rm?arg=all"), [range, "/ip4/192.0.2.1/ipcidr/32"]);
  assert.equal(await strings("swarm/filters"), null);
  assert.equal(await strings("swarm/filters/rm?arg=*"), null);
  await connect();
});

test("bytes are counted in total, by peer and by protocol", async () => {
  await connect();
  const bytes = async (query: string) => (await a.value<{ TotalIn: number }>(`stats/bw${query}`)).TotalIn;
  assert.ok((await bytes("")) > 0);
  assert.ok((await bytes(`?peer=${idB}`)) > 0);
  assert.ok((await bytes("?proto=/ipfs/id/1.0.0")) > 0);
  assert.equal(await bytes(`?peer=${nobody}`), 0);
  assert.deepEqual(await a.failure(`stats/bw?peer=${idB}&proto=x`), [400, "please only specify peer OR protocol"]);
  assert.deepEqual(await a.failure("stats/bw?interval=x"), [500, 'time: invalid duration "x"']);
});

test("the bootstrap list is stored in the configuration", async () => {
  const peer = `/ip4/192.0.2.10/tcp/4001/p2p/${nobody}`;
  assert.deepEqual(await a.value("bootstrap"), { Peers: [] });
  assert.deepEqual(await a.value(`bootstrap/add?arg=${peer}`), { Peers: [peer] });
  assert.equal((await a.call("bootstrap/list?encoding=text")).text, `${peer}\n`);
  assert.deepEqual((await a.value("config?arg=Bootstrap")).Value, [peer]);
  assert.equal((await a.call(`bootstrap/rm?encoding=text&arg=/p2p/${nobody}`)).text, `removed ${peer}\n`);
  assert.equal((await a.value<{ Peers: string[] }>("bootstrap/add/default")).Peers.length, 6);
  assert.equal((await a.value<{ Peers: string[] }>("bootstrap/rm/all")).Peers.length, 6);
  assert.equal((await a.value("config?arg=Bootstrap")).Value, null);
});

test("without a network, each command fails with its own message", async () => {
  for (const path of ["swarm/filters", `ping?arg=${idB}`]) {
    assert.deepEqual(await offline.failure(path), [500, onlineOnly]);
  }
  assert.deepEqual(await offline.failure("stats/bw"), [400, onlineOnly]);
  for (const path of ["swarm/peers", "swarm/addrs", "swarm/addrs/local", "swarm/addrs/listen"]) {
    assert.deepEqual(await offline.failure(path), [500, actionOnly]);
  }
  assert.deepEqual(await offline.failure(`swarm/connect?arg=${swarmB}`), [
    500,
    `connect ${idB} failure: ${actionOnly}`,
  ]);
  assert.deepEqual(await strings(`swarm/disconnect?arg=${swarmB}`, offline), [
    `disconnect ${idB} failure: ${actionOnly}`,
  ]);
  const own = await offline.value<Identity>("id");
  assert.deepEqual([own.Addresses, own.Protocols], [null, null]);
  assert.match(
    String((await offline.failure(`id?arg=${idB}`))[1]),
    /^'ipfs id' currently cannot query information on remote\n/,
  );
});
