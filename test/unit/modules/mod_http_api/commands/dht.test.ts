import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { type Called, type RpcHost, startRpc } from "./support.ts";

const nobody = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
const nowhere = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";
const lack = "failed to find any peer in table";
const missing = "routing: not found";
const onlineOnly = "this command must be run in online mode. Try running 'ipfs daemon' first";

interface Event {
  readonly Extra: string;
  readonly ID: string;
  readonly Responses: readonly { readonly ID: string; readonly Addrs: readonly string[] }[] | null;
  readonly Type: number;
}

interface Tables {
  readonly Name: string;
  readonly Buckets: readonly {
    readonly LastRefresh: string;
    readonly Peers:
      | readonly { readonly ID: string; readonly Connected: boolean; readonly AgentVersion: string }[]
      | null;
  }[];
}

interface Announced {
  readonly TotalProvides: number;
  readonly LastReprovideBatchSize: number;
  readonly AvgProvideDuration: number;
}

/** `a` and `b` know each other; `alone` knows no peer. */
let a: RpcHost;
let b: RpcHost;
let alone: RpcHost;
let offline: RpcHost;
const id = { a: "", b: "" };
let swarmB: string;

before(async () => {
  const hosts = [
    startRpc({ node_offline: false }),
    startRpc({ node_offline: false }),
    startRpc({ node_offline: false }),
    startRpc(),
  ] as const;
  [a, b, alone, offline] = await Promise.all(hosts);
  const of = (host: RpcHost) => host.value<{ ID: string; Addresses: string[] }>("id");
  const facts = await of(b);
  id.a = (await of(a)).ID;
  id.b = facts.ID;
  swarmB = facts.Addresses[0] as string;
  await a.call(`swarm/connect?arg=${swarmB}`);
  await eventually("each node knows the other", async () => (await peersOf(a)) > 0 && (await peersOf(b)) > 0);
});
after(() => Promise.all([a, b, alone, offline].map((host) => host.stop())));

const peersOf = async (host: RpcHost) => {
  const { Buckets } = await host.value<Tables>("stats/dht?arg=lan");
  return Buckets.flatMap(({ Peers }) => Peers ?? []).length;
};
const events = ({ lines }: Called) => lines as readonly Event[];
const added = async (host: RpcHost, text: string) =>
  (events(await host.call("add", { file: text }))[0] as unknown as { Hash: string }).Hash;
const withoutId = (address: string) => address.slice(0, address.indexOf("/p2p/"));
const failed = (Extra: string): Event => ({ Extra, ID: "", Responses: null, Type: 3 });
/** Returns the lines of a verbose text without their times. */
const verbose = ({ text }: Called) => text.replaceAll(/^\d\d:\d\d:\d\d\.\d{3}: /gm, "").split("\n");

test("a peer is found", async () => {
  const { status, lines } = await a.call(`dht/findpeer?arg=${id.b}`);
  assert.equal(status, 200);
  const found = { Extra: "", ID: "", Responses: [{ ID: id.b, Addrs: [withoutId(swarmB)] }], Type: 2 };
  assert.deepEqual(lines, [found]);
  assert.equal((await a.call(`dht/findpeer?arg=${id.b}&encoding=text`)).text, `${withoutId(swarmB)}\n`);
  assert.match(
    (await a.call(`dht/findpeer?arg=${id.b}&encoding=text&v=true`)).text,
    /^\d\d:\d\d:\d\d\.\d{3}: \/ip4\/127\.0\.0\.1\/tcp\/\d+\n$/,
  );
  assert.deepEqual(await a.failure("dht/findpeer?arg=x"), [500, "failed to parse peer ID: cid too short"]);
});

test("an unknown peer is not found", async () => {
  const response = await a.call(`dht/findpeer?arg=${nobody}`);
  assert.equal(response.status, 200);
  const received = events(response);
  assert.deepEqual(received.at(-1), failed(missing));
  assert.deepEqual(
    received.filter(({ Type }) => Type < 2),
    [
      { Extra: "", ID: id.b, Responses: null, Type: 0 },
      { Extra: "", ID: id.b, Responses: [], Type: 1 },
    ],
  );
  assert.deepEqual(received.filter(({ Type }) => Type === 3).length, 2);
  const text = verbose(await a.call(`dht/findpeer?arg=${nobody}&encoding=text&verbose=true`));
  assert.deepEqual(text.toSorted(), [
    "",
    `* ${id.b} says use `,
    `* querying ${id.b}`,
    `error: ${lack}`,
    `error: ${missing}`,
  ]);
});

test("providers are found", async () => {
  const cid = await added(b, "provided by b");
  const provided = await b.call(`dht/provide?arg=${cid}`);
  assert.equal(provided.status, 200);
  assert.deepEqual([...new Set(events(provided).map(({ Type }) => Type))].sort(), [0, 1]);
  const found = events(await a.call(`dht/findprovs?arg=${cid}&num-providers=1`)).filter(({ Type }) => Type === 4);
  const provider = { ID: id.b, Addrs: [withoutId(swarmB)] };
  assert.deepEqual(found, [{ Extra: "", ID: "", Responses: [provider], Type: 4 }]);
  assert.equal((await a.call(`dht/findprovs?arg=${cid}&n=1&encoding=text`)).text, `${id.b}\n`);
  const text = verbose(await a.call(`dht/findprovs?arg=${cid}&n=1&encoding=text&verbose=true`));
  assert.ok(text.join("\n").includes(`provider: ${id.b}\n\t${withoutId(swarmB)}\n`));
  const { status, lines } = await a.call(`dht/findprovs?arg=${nowhere}`);
  assert.deepEqual([status, (lines as Event[]).filter(({ Type }) => Type === 4)], [200, []]);
  assert.deepEqual(await a.failure("dht/findprovs?arg=x"), [500, "cid too short"]);
  const few = `dht/findprovs?arg=${nowhere}&num-providers=0`;
  assert.deepEqual(await a.failure(few), [500, "number of providers must be greater than 0"]);
});

test("only stored blocks are announced", async () => {
  const text = `block ${nowhere} not found locally, cannot provide`;
  assert.deepEqual(await a.failure(`dht/provide?arg=${nowhere}`), [500, text]);
  assert.deepEqual(await a.failure("dht/provide?arg=x"), [500, "cid too short"]);
  const cid = await added(a, "a".repeat(300_000));
  const calls = [await a.call(`dht/provide?arg=${cid}`), await a.call(`dht/provide?arg=${cid}&recursive=true`)];
  assert.deepEqual(
    calls.map((call) => events(call).filter(({ Type }) => Type === 0).length),
    [1, 3],
  );
});

test("the nearest peers are listed", async () => {
  const response = await a.call(`dht/query?arg=${nobody}`);
  assert.deepEqual(events(response).at(-1), { Extra: "", ID: id.b, Responses: null, Type: 2 });
  assert.equal((await a.call(`dht/query?arg=${nobody}&encoding=text`)).text, `${id.b}\n`);
  assert.deepEqual(await a.failure("dht/query?arg=x"), [400, "invalid peer ID"]);
  assert.deepEqual(await offline.failure(`dht/query?arg=${nobody}`), [500, "routing service is not a DHT"]);
});

test("records are stored and returned", async () => {
  const key = `/pk/${id.a}`;
  const { PublicKey } = await a.value<{ PublicKey: string }>("id");
  // The record of an ed25519 key is valid UTF-8, so it can be sent in a file.
  const record = Buffer.from(PublicKey, "base64");
  const form = new FormData();
  form.append("file", new Blob([record]));
  const put = await fetch(`http://127.0.0.1:${a.http}/api/v0/dht/put?arg=${key}`, { method: "POST", body: form });
  const received = (await put.text()).trimEnd().split("\n");
  assert.deepEqual(JSON.parse(received.at(-1) ?? ""), { Extra: "", ID: id.b, Responses: null, Type: 5 });
  const got = events(await b.call(`dht/get?arg=${key}`));
  assert.deepEqual(got.at(-1), { Extra: PublicKey, ID: "", Responses: null, Type: 5 });
  for (const { Type, Responses } of got) if (Type === 1) assert.equal(Responses, null);
  const raw = await fetch(`http://127.0.0.1:${b.http}/api/v0/dht/get?arg=${key}&encoding=text`, { method: "POST" });
  assert.deepEqual(Buffer.from(await raw.arrayBuffer()), record);
  const text = verbose(await b.call(`dht/get?arg=${key}&encoding=text&verbose=true`));
  assert.ok(text.includes(`got value: '${PublicKey}'`));
});

test("invalid records are refused", async () => {
  const bad = await a.call(`dht/put?arg=/ipns/${id.a}`, { data: "not a record" });
  assert.deepEqual([bad.status, bad.lines], [200, [failed("record could not be unmarshalled")]]);
  for (const key of ["/unknown/x", "x", "/ipns", `/ipns/${id.a}/more`]) {
    assert.deepEqual(await a.failure(`dht/get?arg=${key}`), [500, "invalid key"], key);
    assert.deepEqual(await a.failure(`dht/put?arg=${key}`, { data: "x" }), [500, "invalid key"], key);
  }
  assert.deepEqual(await a.failure("dht/get?arg=/ipns/x"), [500, "failed to parse peer ID: cid too short"]);
  const none = await a.call(`dht/get?arg=/ipns/${nobody}`);
  assert.deepEqual([none.status, events(none).at(-1)], [200, failed(missing)]);
});

test("a node without peers reports that", async () => {
  assert.deepEqual((await alone.call(`dht/findpeer?arg=${nobody}`)).lines, [failed(lack), failed(lack), failed(lack)]);
  assert.deepEqual((await alone.call(`dht/query?arg=${nobody}`)).lines, [failed(lack)]);
  const cid = await added(alone, "x");
  assert.deepEqual(await alone.failure(`dht/provide?arg=${cid}`), [500, "cannot provide, no connected peers"]);
  assert.deepEqual(await alone.failure("bitswap/reprovide"), [500, "cannot reprovide, no connected peers"]);
  assert.deepEqual((await alone.call("stats/dht")).lines, [
    { Name: "wan", Buckets: [] },
    { Name: "lan", Buckets: [] },
  ]);
  const { ProvideBufLen } = await alone.value<{ ProvideBufLen: number }>("bitswap/stat");
  assert.equal(ProvideBufLen, 0);
});

test("offline, no peer is queried", async () => {
  const calls = [
    `dht/findpeer?arg=${nobody}`,
    `dht/findprovs?arg=${nowhere}`,
    `dht/get?arg=/ipns/${nobody}`,
    `dht/provide?arg=${nowhere}`,
    "stats/dht",
    "stats/provide",
    "bitswap/reprovide",
  ];
  for (const call of calls) assert.deepEqual(await offline.failure(call), [500, onlineOnly], call);
  assert.deepEqual(await offline.failure(`dht/put?arg=/ipns/${nobody}`, { data: "x" }), [500, onlineOnly]);
});

test("all stored blocks are announced again on request", async () => {
  const { status, text } = await a.call("bitswap/reprovide");
  assert.deepEqual([status, text], [200, ""]);
});

test("the routing tables are shown", async () => {
  const [wan, lan] = (await a.call("stats/dht")).lines as [Tables, Tables];
  assert.deepEqual(wan, { Name: "wan", Buckets: [] });
  const bucket = lan.Buckets.at(-1);
  assert.match(bucket?.LastRefresh ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)$/);
  const [entry] = bucket?.Peers ?? [];
  assert.deepEqual([entry?.ID, entry?.Connected], [id.b, true]);
  assert.match(entry?.AgentVersion ?? "", /^modhost\//);
  for (const before of lan.Buckets.slice(0, -1)) assert.equal(before.Peers, null);
  const named = (await a.call("stats/dht?arg=lanserver")).lines as readonly Tables[];
  assert.deepEqual([named.length, named[0]?.Name], [1, "lanserver"]);
  assert.deepEqual(await a.failure("stats/dht?arg=odd"), [400, "unknown dht type: odd"]);
  const text = (await a.call("stats/dht?encoding=text")).text.split("\n");
  assert.equal(text[0], "DHT wan (0 peers):          ");
  assert.match(text[1] ?? "", /^DHT lan \(1 peers\): {64,}$/);
  assert.ok(text.some((line) => /^ {2}Bucket {2}\d \(1 peers\) - refreshed \d+s ago: +$/.test(line)));
  assert.ok(text.includes(`    Peer${" ".repeat(50)}last useful  last queried  Agent Version`));
  assert.ok(text.some((line) => new RegExp(`^ {2}@ ${id.b}  (?:never|\\d+s ago) +\\d+s ago +modhost/`).test(line)));
});

test("batched announcing has statistics", async () => {
  const off = "can only return stats if Experimental.AcceleratedDHTClient is enabled";
  assert.deepEqual(await a.failure("stats/provide"), [500, off]);
  await a.call("config?arg=Experimental.AcceleratedDHTClient&arg=true&bool=true");
  try {
    const stat = await a.value<Announced>("stats/provide");
    assert.ok(stat.TotalProvides > 0 && stat.AvgProvideDuration > 0 && stat.LastReprovideBatchSize > 0);
    const text = (await a.call("stats/provide?encoding=text")).text.split("\n");
    assert.match(text[0] ?? "", /^TotalProvides: {10}\d+$/);
    assert.match(text[3] ?? "", /^LastReprovideBatchSize: \d+$/);
    const [wan, ...more] = (await a.call("stats/dht")).lines as readonly Tables[];
    assert.deepEqual([wan, more], [{ Name: "wan", Buckets: [{ LastRefresh: "", Peers: null }] }, []]);
    assert.deepEqual(await a.failure("stats/dht?arg=lan"), [400, "no LAN client found"]);
  } finally {
    await a.call("config?arg=Experimental.AcceleratedDHTClient&arg=false&bool=true");
  }
});
