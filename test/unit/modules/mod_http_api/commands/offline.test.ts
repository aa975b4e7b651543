/**
 * Commands that need a network, called without one. The expected responses come from go-ipfs,
 * which was offline too.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "./support.ts";

const peer = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
const swarm = `/ip4/127.0.0.1/tcp/9/p2p/${peer}`;
const empty = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";

const command = "this command must be run in online mode. Try running 'ipfs daemon' first";
const action = "this action must be run in online mode, try running 'ipfs daemon' first";
const pubsub = "experimental pubsub feature not enabled. Run daemon with --enable-pubsub-experiment to use.";
const namesOverPubsub = "IPNS pubsub subsystem is not enabled";
const unresolved = "could not resolve name";

type Expected = readonly [status: number, body: unknown];

/** Returns 500 with code 0, like most failures. */
const failed = (message: string): Expected => [500, { Message: message, Code: 0, Type: "error" }];
/** Returns 400 with code 1. */
const refused = (message: string): Expected => [400, { Message: message, Code: 1, Type: "error" }];
const succeeded = (...values: unknown[]): Expected => [200, values.length === 1 ? values[0] : undefined];

const expectations: Readonly<Record<string, Expected>> = {
  [`ping?arg=${peer}`]: failed(command),
  "ping?arg=x": failed(command),
  "swarm/peers": failed(action),
  "swarm/addrs": failed(action),
  "swarm/addrs/local": failed(action),
  "swarm/addrs/listen": failed(action),
  [`swarm/connect?arg=${swarm}`]: failed(`connect ${peer} failure: ${action}`),
  [`swarm/disconnect?arg=${swarm}`]: succeeded({ Strings: [`disconnect ${peer} failure: ${action}`] }),
  "swarm/filters": failed(command),
  "swarm/filters/add?arg=/ip4/1.2.3.4/ipcidr/32": failed(command),
  "swarm/filters/rm?arg=all": failed(command),
  bootstrap: succeeded({ Peers: [] }),
  "bootstrap/list": succeeded({ Peers: [] }),
  "bitswap/stat": refused(command),
  "stats/bitswap": refused(command),
  "bitswap/wantlist": failed(command),
  [`bitswap/wantlist?peer=${peer}`]: failed(command),
  [`bitswap/ledger?arg=${peer}`]: failed(command),
  "bitswap/ledger?arg=x": failed(command),
  "bitswap/reprovide": failed(command),
  [`dht/findpeer?arg=${peer}`]: failed(command),
  "dht/findpeer?arg=x": failed(command),
  [`dht/findprovs?arg=${empty}`]: failed(command),
  "dht/findprovs?arg=x": failed(command),
  [`dht/get?arg=/ipns/${peer}`]: failed(command),
  [`dht/put?arg=/ipns/${peer}`]: failed(command),
  [`dht/provide?arg=${empty}`]: failed(command),
  [`dht/query?arg=${peer}`]: failed("routing service is not a DHT"),
  "dht/query?arg=x": failed("routing service is not a DHT"),
  "stats/bw": refused(command),
  "stats/bw?poll=true": refused(command),
  [`stats/bw?peer=${peer}&proto=x`]: refused(command),
  "stats/dht": failed(command),
  "stats/dht?arg=odd": failed(command),
  "stats/provide": failed(command),
  "id?arg=x": failed("invalid peer id"),
  [`name/publish?arg=/ipfs/${empty}`]: failed("can't publish while offline: pass `--allow-offline` to override"),
  [`name/publish?arg=/ipfs/${empty}&lifetime=x`]: failed('error parsing lifetime option: time: invalid duration "x"'),
  [`name/resolve?arg=${peer}`]: failed(unresolved),
  [`name/resolve?arg=${peer}&stream=true`]: succeeded(),
  [`name/resolve?arg=${peer}&dht-timeout=x`]: failed('time: invalid duration "x"'),
  [`resolve?arg=/ipns/${peer}`]: failed(unresolved),
  "name/pubsub/state": succeeded({ Enabled: false }),
  "name/pubsub/subs": refused(namesOverPubsub),
  [`name/pubsub/cancel?arg=/ipns/${peer}`]: refused(namesOverPubsub),
  "pubsub/ls": failed(pubsub),
  "pubsub/peers": failed(pubsub),
  "pubsub/pub?arg=t&arg=m": failed(pubsub),
  "pubsub/sub?arg=t": failed(pubsub),
  mount: failed(command),
  "pin/remote/service/ls": succeeded({ RemoteServices: [] }),
  "pin/remote/service/ls?stat=true": succeeded({ RemoteServices: [] }),
  "pin/remote/ls?service=none": failed("service not known"),
  "pin/remote/ls": failed("a service name must be passed"),
  [`pin/remote/add?arg=/ipfs/${empty}&service=none`]: failed("service not known"),
  "pin/remote/rm?service=none": failed("service not known"),
  "pin/remote/service/rm?arg=none": succeeded(),
};

const streams = [
  "p2p/ls",
  "p2p/stream/ls",
  "p2p/close?all=true",
  "p2p/close",
  "p2p/stream/close?arg=0",
  "p2p/stream/close",
  "p2p/listen?arg=a&arg=b",
  "p2p/listen?arg=/x/a&arg=/ip4/127.0.0.1/tcp/9",
  `p2p/forward?arg=/x/a&arg=/ip4/127.0.0.1/tcp/0&arg=/p2p/${peer}`,
];

let host: RpcHost;

before(async () => {
  host = await startRpc();
});
after(() => host.stop());

async function response(path: string): Promise<Expected> {
  const files = path.startsWith("dht/put") ? { value: "value" } : undefined;
  const { status, lines } = await host.call(path, files);
  return succeeded(...lines).with(0, status) as unknown as Expected;
}

for (const [path, expected] of Object.entries(expectations)) {
  test(`${path} without a network`, async () => assert.deepEqual(await response(path), expected));
}

test("id describes the node itself, and fails for other peers", async () => {
  const { Addresses, Protocols, AgentVersion } = await host.value("id");
  assert.deepEqual([Addresses, Protocols, typeof AgentVersion], [null, null, "string"]);
  const [status, text] = await host.failure(`id?arg=${peer}`);
  assert.equal(status, 500);
  assert.match(
    String(text),
    /^'ipfs id' currently cannot query information on remote\npeers without a running daemon;/,
  );
});

test("a name is published and resolved locally if that is allowed", async () => {
  const published = await host.value(`name/publish?arg=/ipfs/${empty}&allow-offline=true`);
  assert.equal(published.Value, `/ipfs/${empty}`);
  assert.deepEqual(await host.value("name/resolve"), { Path: `/ipfs/${empty}` });
});

test("streams can be mounted if that is switched on, but not without a network", async () => {
  const first = () => Promise.all(streams.map(response));
  assert.deepEqual(
    await first(),
    streams.map(() => failed("libp2p stream mounting not enabled")),
  );
  await host.value("config?arg=Experimental.Libp2pStreamMounting&arg=true&bool=true");
  assert.deepEqual(
    await first(),
    streams.map(() => failed(command)),
  );
});
