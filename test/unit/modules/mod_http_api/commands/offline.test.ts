/** What the commands that need others say without a network: as the reference answered each call, offline too. */
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

type Answer = readonly [status: number, body: unknown];

/** 500 with code 0, as most failures are. */
const failed = (message: string): Answer => [500, { Message: message, Code: 0, Type: "error" }];
/** 400 with code 1. */
const refused = (message: string): Answer => [400, { Message: message, Code: 1, Type: "error" }];
const answered = (...values: unknown[]): Answer => [200, values.length === 1 ? values[0] : undefined];

const answers: Readonly<Record<string, Answer>> = {
  [`ping?arg=${peer}`]: failed(command),
  "ping?arg=x": failed(command),
  "swarm/peers": failed(action),
  "swarm/addrs": failed(action),
  "swarm/addrs/local": failed(action),
  "swarm/addrs/listen": failed(action),
  [`swarm/connect?arg=${swarm}`]: failed(`connect ${peer} failure: ${action}`),
  [`swarm/disconnect?arg=${swarm}`]: answered({ Strings: [`disconnect ${peer} failure: ${action}`] }),
  "swarm/filters": failed(command),
  "swarm/filters/add?arg=/ip4/1.2.3.4/ipcidr/32": failed(command),
  "swarm/filters/rm?arg=all": failed(command),
  bootstrap: answered({ Peers: [] }),
  "bootstrap/list": answered({ Peers: [] }),
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
  [`name/resolve?arg=${peer}&stream=true`]: answered(),
  [`name/resolve?arg=${peer}&dht-timeout=x`]: failed('time: invalid duration "x"'),
  [`resolve?arg=/ipns/${peer}`]: failed(unresolved),
  "name/pubsub/state": answered({ Enabled: false }),
  "name/pubsub/subs": refused(namesOverPubsub),
  [`name/pubsub/cancel?arg=/ipns/${peer}`]: refused(namesOverPubsub),
  "pubsub/ls": failed(pubsub),
  "pubsub/peers": failed(pubsub),
  "pubsub/pub?arg=t&arg=m": failed(pubsub),
  "pubsub/sub?arg=t": failed(pubsub),
  mount: failed(command),
  "pin/remote/service/ls": answered({ RemoteServices: [] }),
  "pin/remote/service/ls?stat=true": answered({ RemoteServices: [] }),
  "pin/remote/ls?service=none": failed("service not known"),
  "pin/remote/ls": failed("a service name must be passed"),
  [`pin/remote/add?arg=/ipfs/${empty}&service=none`]: failed("service not known"),
  "pin/remote/rm?service=none": failed("service not known"),
  "pin/remote/service/rm?arg=none": answered(),
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

async function answer(path: string): Promise<Answer> {
  const files = path.startsWith("dht/put") ? { value: "value" } : undefined;
  const { status, lines } = await host.call(path, files);
  return answered(...lines).with(0, status) as unknown as Answer;
}

for (const [path, expected] of Object.entries(answers)) {
  test(`${path} without a network`, async () => assert.deepEqual(await answer(path), expected));
}

test("what is known of the node itself is told, and of others that nothing can be known", async () => {
  const { Addresses, Protocols, AgentVersion } = await host.value("id");
  assert.deepEqual([Addresses, Protocols, typeof AgentVersion], [null, null, "string"]);
  const [status, text] = await host.failure(`id?arg=${peer}`);
  assert.equal(status, 500);
  assert.match(
    String(text),
    /^'ipfs id' currently cannot query information on remote\npeers without a running daemon;/,
  );
});

test("a name is published and resolved here when that is allowed", async () => {
  const published = await host.value(`name/publish?arg=/ipfs/${empty}&allow-offline=true`);
  assert.equal(published.Value, `/ipfs/${empty}`);
  assert.deepEqual(await host.value("name/resolve"), { Path: `/ipfs/${empty}` });
});

test("streams are mounted when that is switched on, and not without a network", async () => {
  const first = () => Promise.all(streams.map(answer));
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
