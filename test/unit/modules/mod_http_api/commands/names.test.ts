import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { decode, encode } from "@dnsquery/dns-packet";
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startRpc } from "./support.ts";

interface Path {
  readonly Path: string;
}
interface Published {
  readonly Name: string;
  readonly Value: string;
}

const empty = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const nobody = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
const nowhere = "Qmf7u9Cnrj8q8h3sPwiAEnpjtWkEYRRxw9caqbusoPnxvn";

/** TXT records of a resolver on loopback. */
const records: Readonly<Record<string, readonly string[]>> = {
  "_dnslink.site.test": [`dnslink=/ipfs/${empty}`],
  "_dnslink.chain.test": ["dnslink=/ipns/site.test/deep"],
  "loop.test": ["dnslink=/ipns/loop.test"],
};
const resolver = createServer((request, response) => {
  const query = new URL(request.url ?? "", "http://x").searchParams.get("dns") ?? "";
  const { questions = [] } = decode(Buffer.from(query, "base64url"));
  const name = questions[0]?.name ?? "";
  const found = records[name];
  const responses = (found ?? []).map((text) => ({ type: "TXT" as const, name, data: [text] }));
  response.end(encode({ type: "response", flags: found === undefined ? 3 : 0, questions, answers: responses }));
});

let a: RpcHost;
let b: RpcHost;
let offline: RpcHost;
let id: string;
const hosts = () => [a, b, offline];
const name = "name/resolve?arg=";
const path = async (call: string, host = offline) => (await host.value<Path>(call)).Path;
const message = async (call: string, host = offline) => (await host.failure(call))[1];

before(async () => {
  resolver.listen(0, "127.0.0.1");
  await once(resolver, "listening");
  [a, b, offline] = await Promise.all([
    startRpc({ node_offline: false }),
    startRpc({ node_offline: false }),
    startRpc(),
  ]);
  const url = `http://127.0.0.1:${(resolver.address() as AddressInfo).port}/dns-query`;
  const set = await offline.call(`config?arg=DNS.Resolvers&arg=${encodeURIComponent(`{"test.":"${url}"}`)}&json=true`);
  assert.equal(set.status, 200);
  id = (await offline.value<{ ID: string }>("id")).ID;
  const { Addresses } = await b.value<{ Addresses: readonly string[] }>("id");
  assert.equal((await a.call(`swarm/connect?arg=${Addresses[0]}`)).status, 200);
  await eventually(
    "each routing table contains the other node",
    async () => (await tableOf(a)) + (await tableOf(b)) >= 2,
  );
});
after(async () => {
  await Promise.all(hosts().map((host) => host?.stop()));
  resolver.close();
});

async function tableOf(host: RpcHost): Promise<number> {
  const { Buckets } = await host.value<{ Buckets: readonly { Peers: readonly unknown[] | null }[] }>(
    "stats/dht?arg=lan",
  );
  return Buckets.flatMap(({ Peers }) => Peers ?? []).length;
}

test("a new node's name resolves to the empty directory", async () => {
  assert.equal(await path("name/resolve"), `/ipfs/${empty}`);
  assert.equal(await path(`resolve?arg=/ipns/${id}`), `/ipfs/${empty}`);
  assert.equal(await path(`resolve?arg=/name/${id}`), `/ipfs/${empty}`);
  assert.deepEqual((await offline.call(`ls?arg=/ipns/${id}`)).status, 200);
  assert.equal(await path(`${name}${id}/a//b/`), `/ipfs/${empty}/a//b/`);
  assert.equal(await path(`resolve?arg=/ipns/${id}/nix&recursive=false`), `/ipfs/${empty}/nix`);
  assert.equal(await message(`resolve?arg=/ipns/${id}/nix`), `no link named "nix" under ${empty}`);
});

test("names resolve to the published content in every command that reads paths", async () => {
  const added = await offline.call("add?wrap-with-directory=true&pin=false", { "a.txt": "named" });
  const { Hash } = added.lines.at(-1) as { Hash: string };
  const { Id } = await offline.value<{ Id: string }>("key/gen?arg=site");
  const published = await offline.value<Published>(`name/publish?arg=${Hash}&key=site&allow-offline=true`);
  assert.deepEqual(published, { Name: Id, Value: `/ipfs/${Hash}` });
  assert.equal((await offline.call(`cat?arg=/ipns/${Id}/a.txt`)).text, "named");
  assert.equal((await offline.call(`cat?arg=/ipns/site.test&timeout=5s`)).status, 500);
  const [{ Objects }] = (await offline.call(`ls?arg=/ipns/${Id}`)).lines as [
    { Objects: [{ Links: [{ Name: string }] }] },
  ];
  assert.equal(Objects[0].Links[0].Name, "a.txt");
  const { Pins } = await offline.value<{ Pins: readonly string[] }>(`pin/add?arg=/ipns/${Id}`);
  assert.deepEqual(Pins, [Hash]);
  assert.equal((await offline.call(`refs?arg=/ipns/${Id}`)).status, 200);
  assert.equal((await offline.call(`get?arg=/ipns/${Id}/a.txt`)).status, 200);
  assert.equal((await offline.call(`dag/get?arg=/ipns/${Id}`)).status, 200);
  assert.equal((await offline.call(`object/stat?arg=/ipns/${Id}`)).status, 200);
});

test("publishing offline needs permission", async () => {
  const refusal = "can't publish while offline: pass `--allow-offline` to override";
  assert.deepEqual(await offline.failure(`name/publish?arg=${empty}`), [500, refusal]);
  assert.deepEqual(await offline.failure(`name/publish?arg=${empty}&offline=true`), [500, refusal]);
  assert.equal(await message("name/publish?arg=/foo&resolve=false"), refusal);
  assert.equal(await message(`name/publish?arg=${nowhere}`), "merkledag: not found");
  const allowed = "resolve=false&allow-offline=true";
  assert.equal(
    await message(`name/publish?arg=/foo&${allowed}`),
    "invalid path \"/foo\": path does not begin with '/'",
  );
  assert.equal(await message(`name/publish?arg=${empty}&${allowed}&key=x`), "no key by the given name was found");
  assert.equal(await message(`name/publish?arg=${empty}&${allowed}&lifetime=-1h`), "expired record");
  assert.equal(
    await message(`name/publish?arg=${empty}&ipns-base=odd&lifetime=x`),
    "Unsupported multibase encoding: odd",
  );
});

test("responses as text, and names in other bases", async () => {
  const publish = "name/publish?allow-offline=true&arg=/ipns/a%5Cb%01&resolve=false&encoding=text";
  const own = (await offline.value<{ Keys: readonly { Id: string }[] }>("key/list")).Keys[0]?.Id;
  assert.equal((await offline.call(publish)).text, `Published to ${own}: /ipns/a\\\\b\\x01\n`);
  assert.equal((await offline.call(`${publish}&quieter=true&ipns-base=b58mh`)).text, `${id}\n`);
  assert.equal((await offline.call("name/resolve?recursive=false&encoding=text")).text, "/ipns/a\\b\x01\n");
  assert.equal((await offline.call("name/pubsub/state?encoding=text")).text, "disabled\n");
});

test("DNSLinks are followed by the configured resolver", async () => {
  assert.equal(await path("dns?arg=site.test"), `/ipfs/${empty}`);
  assert.equal(await path("dns?arg=chain.test"), `/ipfs/${empty}/deep`);
  assert.equal(await path("dns?arg=chain.test&recursive=false"), "/ipns/site.test/deep");
  assert.equal(await path(`${name}chain.test/x/`), `/ipfs/${empty}/deep/x/`);
  assert.equal(await path(`${name}/ipns/chain.test&recursive=false`), "/ipns/site.test/deep");
  assert.equal(await path("resolve?arg=/ipns/site.test"), `/ipfs/${empty}`);
  assert.equal(await message("dns?arg=loop.test"), "could not resolve name (recursion limit exceeded)");
  assert.equal(await message("resolve?arg=/ipns/loop.test"), "could not resolve name (recursion limit exceeded)");
  assert.equal(
    await message(`${name}none.test`),
    'could not resolve name: "none.test" is missing a DNSLink record (https://docs.ipfs.io/concepts/dnslink/)',
  );
  assert.equal(await message("dns?arg=/ipns/x"), "not a valid domain name: ");
});

test("unknown names and invalid searches are errors", async () => {
  assert.deepEqual(await offline.failure(name + nobody), [500, "could not resolve name"]);
  const streamed = await offline.call(`${name}${nobody}&stream=true`);
  assert.deepEqual([streamed.status, streamed.text], [200, ""]);
  assert.equal(await message("name/resolve?dht-timeout=-1s"), "DHT timeout value must be >= 0");
  assert.equal(await message(`resolve?arg=/ipns/${id}&r=false&dht-timeout=-1s`), "DHT timeout value must be >= 0");
  assert.equal(await message("name/resolve?dht-timeout=5"), 'time: missing unit in duration "5"');
  assert.equal(await message("resolve?arg=/ipns/x/.."), 'invalid path "/ipns/x/..": ipns path missing IPNS ID');
  assert.deepEqual(await offline.failure("name/pubsub/subs"), [400, "IPNS pubsub subsystem is not enabled"]);
  assert.deepEqual(await offline.failure("name/pubsub/cancel?arg=x"), [400, "IPNS pubsub subsystem is not enabled"]);
});

test("between two nodes, one publishes, and the other resolves, reads and follows", async () => {
  const added = await a.call("add", { file: "named over the wire" });
  const { Hash } = added.lines[0] as { Hash: string };
  const { Name, Value } = await a.value<Published>(`name/publish?arg=/ipfs/${Hash}&ttl=1h`);
  assert.equal(Value, `/ipfs/${Hash}`);
  const found = `${name}${Name}&dht-timeout=20s&dht-record-count=1`;
  assert.equal(await path(found, b), Value);
  assert.equal((await b.call(`cat?arg=/ipns/${Name}`)).text, "named over the wire");
  const streamed = await b.call(`${found}&stream=true&nocache=true`);
  assert.deepEqual(streamed.lines, [{ Path: Value }]);
  assert.deepEqual(await b.value("name/pubsub/state"), { Enabled: true });
  const { Strings } = await b.value<{ Strings: readonly string[] }>("name/pubsub/subs");
  assert.deepEqual(Strings, [`/ipns/${Name}`]);
  assert.deepEqual(await b.value(`name/pubsub/cancel?arg=/ipns/${Name}`), { Canceled: true });
  assert.deepEqual(await b.value(`name/pubsub/cancel?arg=${Name}`), { Canceled: false });
  assert.deepEqual(await b.value("name/pubsub/subs"), { Strings: null });
  const { Protocols } = await b.value<{ Protocols: readonly string[] }>("id");
  assert.ok(Protocols.includes("/libp2p/fetch/0.0.1"));
});
