import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CID } from "multiformats/cid";
import { linksOf } from "#node/formats/ipld/links.ts";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { publicKeyKey, recordKey } from "#node/network/ipns_record/keys.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import { eventTypes } from "#node/network/kad/events.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import {
  add,
  known,
  meet,
  ofType,
  outcome,
  providersIn,
  type RoutingNode,
  soon,
  startNode,
  until,
  untilProvided,
} from "./support.ts";

const nobody = parsePeerId("12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5");
const nowhere = CID.parse("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy");
const empty = "failed to find any peer in table";
const missing = "routing: not found";

/** `a` and `c` are connected to `b`, and learn about each other from it. */
let [a, b, c]: RoutingNode[] = [];

before(async () => {
  [a, b, c] = await Promise.all([startNode(), startNode(), startNode()]);
  await meet(a as RoutingNode, b as RoutingNode);
  await meet(c as RoutingNode, b as RoutingNode);
  await until(() => known(a as RoutingNode) === 2 && known(c as RoutingNode) === 2);
});
after(() => Promise.all([a, b, c].map((each) => each?.[Symbol.asyncDispose]())));

const nodes = () => [a, b, c] as [RoutingNode, RoutingNode, RoutingNode];

const record = async (value: string, sequence: bigint, key = generateKey({ type: "ed25519" })) => {
  const made = await key;
  const validity = formatTimestamp(timestampAfter(3_600_000));
  const bytes = await signRecord(made, { value: Buffer.from(value), validity, sequence, ttl: 0n });
  return { key: recordKey(made.id), bytes, made };
};

test("a block that is added on one node is found from another, with the node's addresses", async () => {
  const [a, , c] = nodes();
  const cid = await add(c, "announced by itself");
  await untilProvided(a, cid, c);
  const { events, failure } = await outcome(a.routing.findProviders(cid, { count: 20, signal: soon() }));
  assert.equal(failure, undefined);
  assert.deepEqual(providersIn(events), [c.id.toString()]);
  const [provider] = ofType(events, "provider");
  const addresses = provider?.responses?.[0]?.multiaddrs.map(String);
  assert.deepEqual(addresses, c.network.swarm.listenAddresses().map(String));
  for (const { id } of ofType(events, "sendingQuery")) assert.ok(id !== undefined && !id.equals(a.id));
  for (const { responses } of ofType(events, "peerResponse")) assert.ok(Array.isArray(responses));
  const found = await Array.fromAsync(a.routing.findProviderPeers(cid, soon()));
  assert.deepEqual(
    found.map(({ id }) => id.toString()),
    [c.id.toString()],
  );
});

test("the blocks below a root are provided by nodes that add them and by nodes that fetch them", async () => {
  const [a, b, c] = nodes();
  const root = await add(a, "x".repeat(300_000));
  const cids = [root, ...linksOf(root, await a.node.blocks.get(root))];
  assert.equal(cids.length, 3);
  for (const cid of cids) await untilProvided(c, cid, a);
  for (const cid of cids) await b.node.blocks.get(cid, { signal: soon() });
  const providers = new Set<string>();
  const other = cids.at(-1) as CID;
  await until(async () => {
    for (const found of providersIn(
      (await outcome(c.routing.findProviders(other, { count: 20, signal: soon() }))).events,
    ))
      providers.add(found);
    return providers.has(b.id.toString());
  });
});

test("providers include the node itself, up to the count", async () => {
  const [a, b, c] = nodes();
  const cid = await add(a, "had by all");
  for (const node of [b, c]) await add(node, "had by all");
  let all: readonly string[] = [];
  await until(async () => {
    all = providersIn((await outcome(a.routing.findProviders(cid, { count: 20, signal: soon() }))).events);
    return all.length >= 3;
  });
  assert.deepEqual([...all].sort(), [a, b, c].map(({ id }) => id.toString()).sort());
  const two = await outcome(a.routing.findProviders(cid, { count: 2, signal: soon() }));
  assert.equal(providersIn(two.events).length, 2);
  const others = await Array.fromAsync(a.routing.findProviderPeers(cid, soon()));
  assert.deepEqual(others.map(({ id }) => id.toString()).sort(), [b, c].map(({ id }) => id.toString()).sort());
});

test("finding no provider is not an error", async () => {
  const [a] = nodes();
  const { events, failure } = await outcome(a.routing.findProviders(nowhere, { count: 20, signal: soon() }));
  assert.equal(failure, undefined);
  assert.deepEqual(ofType(events, "provider"), []);
  assert.deepEqual(ofType(events, "queryError"), []);
});

test("a connected peer is found at once, another one through its peers", async () => {
  const [a, b, c] = nodes();
  const at = (node: RoutingNode) => node.network.swarm.listenAddresses();
  const here = await outcome(a.routing.findPeer(b.id, soon()));
  assert.deepEqual(here.events, [{ type: eventTypes.finalPeer, responses: [{ id: b.id, multiaddrs: [...at(b)] }] }]);
  await a.network.libp2p.hangUp(c.id);
  await c.network.libp2p.hangUp(a.id);
  const requests = await outcome(a.routing.findPeer(c.id, soon()));
  const last = requests.events.at(-1);
  assert.equal(requests.failure, undefined);
  assert.deepEqual(last?.responses?.[0]?.multiaddrs.map(String), at(c).map(String));
  assert.ok(ofType(requests.events, "sendingQuery").length > 0);
  assert.deepEqual((await a.routing.addresses(c.id, soon())).map(String), at(c).map(String));
});

test("an unknown peer is an event and an error", async () => {
  const [a] = nodes();
  const { events, failure } = await outcome(a.routing.findPeer(nobody, soon()));
  assert.equal(failure, missing);
  assert.deepEqual(events.at(-1), { type: eventTypes.queryError, text: missing });
  // The public table is empty.
  assert.equal(ofType(events, "queryError").filter(({ text }) => text === empty).length, 1);
});

test("the peers closest to a key are found, the closest first", async () => {
  const [a, b, c] = nodes();
  const { events, failure } = await outcome(a.routing.closestPeers(b.id.toMultihash().bytes, soon()));
  assert.equal(failure, undefined);
  const found = ofType(events, "finalPeer").map(({ id }) => String(id));
  assert.equal(found[0], b.id.toString());
  assert.deepEqual([...found].sort(), [b.id.toString(), c.id.toString()].sort());
});

test("the best of the records that one node puts is found from another", async () => {
  const [a, b, c] = nodes();
  const first = await record("/ipfs/first", 1n);
  const put = await outcome(a.routing.put(first.key, first.bytes, soon()));
  assert.equal(put.failure, undefined);
  const took = ofType(put.events, "value").map(({ id }) => String(id));
  assert.deepEqual([...took].sort(), [b.id.toString(), c.id.toString()].sort());
  const got = await outcome(c.routing.get(first.key, soon()));
  // Either its own store or a peer responds first.
  const best = got.events.at(-1);
  assert.equal(best?.type, eventTypes.value);
  assert.equal(Buffer.compare(best?.value as Uint8Array, first.bytes), 0);
  for (const { responses } of ofType(got.events, "peerResponse")) assert.equal(responses, undefined);
  const second = await record("/ipfs/second", 2n, Promise.resolve(first.made));
  await b.routing.putQuietly(second.key, second.bytes, soon());
  for (const node of [a, b, c]) {
    let best = await outcome(node.routing.get(first.key, soon()));
    // The query does not wait for a slow peer.
    for (
      let tries = 0;
      tries < 20 && Buffer.compare(second.bytes, best.events.at(-1)?.value ?? Buffer.of()) !== 0;
      tries += 1
    )
      best = await outcome(node.routing.get(first.key, soon()));
    // The store of the node itself returns a Buffer, while a peer may return another kind of bytes.
    assert.deepEqual(Buffer.from(best.events.at(-1)?.value ?? []), Buffer.from(second.bytes));
    assert.equal(ofType(best.events, "value").length, 1);
  }
  const older = await outcome(a.routing.put(first.key, first.bytes, soon()));
  const refusal = "can't replace a newer value with an older value";
  assert.deepEqual([older.failure, older.events], [refusal, [{ type: eventTypes.queryError, text: refusal }]]);
});

test("records are reported one by one, up to the count", async () => {
  const [a, b] = nodes();
  const { key, bytes } = await record("/ipfs/one", 1n);
  await a.routing.putQuietly(key, bytes, soon());
  assert.deepEqual(await Array.fromAsync(b.routing.search(key, { signal: soon() })), [bytes]);
  assert.deepEqual(await Array.fromAsync(b.routing.search(key, { signal: soon(), count: 1 })), [bytes]);
  const none = (await record("/ipfs/none", 1n)).key;
  assert.deepEqual(await Array.fromAsync(b.routing.search(none, { signal: soon() })), []);
});

test("a public key is stored under its id", async () => {
  const [a, , c] = nodes();
  const { id, publicKey: value } = await generateKey({ type: "ed25519" });
  await a.routing.putQuietly(publicKeyKey(id), value, soon());
  const got = await outcome(c.routing.get(publicKeyKey(id), soon()));
  assert.deepEqual(Buffer.from(got.events.at(-1)?.value ?? []), Buffer.from(value));
  const wrong = await outcome(a.routing.put(publicKeyKey(nobody), value, soon()));
  assert.equal(wrong.failure, "public key does not match storage key");
});

test("an invalid record is refused before any query", async () => {
  const [a] = nodes();
  const { key } = await record("/ipfs/x", 1n);
  const bad = await outcome(a.routing.put(key, Buffer.from("not a record"), soon()));
  const text = "record could not be unmarshalled";
  assert.deepEqual([bad.failure, bad.events], [text, [{ type: eventTypes.queryError, text }]]);
  const odd = await outcome(a.routing.put(Buffer.from("/odd/key"), Buffer.from("x"), soon()));
  assert.equal(odd.failure, "invalid record keytype");
});

test("a query ends with its signal", async () => {
  const [a] = nodes();
  const reason = new Error("enough");
  const aborted = AbortSignal.abort(reason);
  for (const events of [
    a.routing.findPeer(nobody, aborted),
    a.routing.findProviders(nowhere, { count: 1, signal: aborted }),
    a.routing.closestPeers(nobody.toMultihash().bytes, aborted),
  ]) {
    await assert.rejects(events.next(), reason);
  }
});

test("the routing table is listed by bucket, with the times of the last responses", async () => {
  const [a, b, c] = nodes();
  const buckets = a.routing.dht?.lan.buckets() ?? [];
  const entries = buckets.flatMap(({ peers }) => peers);
  assert.deepEqual(entries.map(({ id }) => id.toString()).sort(), [b, c].map(({ id }) => id.toString()).sort());
  assert.ok((buckets.at(-1)?.peers.length ?? 0) > 0);
  for (const { queried, useful } of entries) {
    assert.ok(queried !== undefined && Date.now() - queried.getTime() < 60_000);
    assert.ok(useful === undefined || useful <= queried);
  }
  assert.ok(buckets.every(({ refreshed }) => refreshed !== undefined));
  assert.deepEqual(a.routing.dht?.wan.buckets(), []);
});

test("an unreachable peer is removed by the next query", async () => {
  const [a] = nodes();
  await using d = await startNode();
  await meet(d, a);
  await until(() => known(a) === 3);
  await d.node.close();
  await outcome(a.routing.closestPeers(d.id.toMultihash().bytes, soon()));
  await until(() => known(a) === 2);
});

test("a query with an empty routing table fails at once", async () => {
  await using alone = await startNode();
  const { routing } = alone;
  const lack = { type: eventTypes.queryError, text: empty };
  const peer = await outcome(routing.findPeer(nobody, soon()));
  assert.deepEqual([peer.failure, peer.events], [empty, [lack, lack, lack]]);
  const near = await outcome(routing.closestPeers(nobody.toMultihash().bytes, soon()));
  assert.deepEqual([near.failure, near.events], [empty, [lack]]);
  const providers = await outcome(routing.findProviders(nowhere, { count: 1, signal: soon() }));
  assert.deepEqual(providers, { events: [lack] });
  const { key, bytes } = await record("/ipfs/x", 1n);
  const got = await outcome(routing.get(key, soon()));
  assert.deepEqual(got.events, [lack, lack, { type: eventTypes.queryError, text: missing }]);
  const put = await outcome(routing.put(key, bytes, soon()));
  assert.deepEqual([put.failure, put.events], [empty, [lack]]);
  await assert.rejects(routing.reprovide(soon()), { message: "cannot reprovide, no connected peers" });
  // Records that are stored locally are found locally.
  const stored = await outcome(routing.get(key, soon()));
  assert.deepEqual(stored.events.at(-1)?.value, bytes);
});

test("with Routing.Type none nothing is found", async () => {
  await using none = await startNode({ config: { "Routing.Type": "none" } });
  const { routing, network } = none;
  assert.equal(routing.dht, undefined);
  assert.ok(!network.libp2p.getProtocols().some((protocol) => protocol.includes("kad")));
  assert.equal((await outcome(routing.findPeer(nobody, soon()))).failure, missing);
  assert.equal(
    (await outcome(routing.closestPeers(nobody.toMultihash().bytes, soon()))).failure,
    "routing service is not a DHT",
  );
  assert.deepEqual(await outcome(routing.findProviders(nowhere, { count: 1, signal: soon() })), { events: [] });
});

test("a DHT client does not respond to queries", async () => {
  await using client = await startNode({ config: { "Routing.Type": "dhtclient" } });
  const [a] = nodes();
  assert.ok(!client.network.libp2p.getProtocols().includes("/ipfs/lan/kad/1.0.0"));
  await client.network.swarm.connect(a.id, a.network.swarm.listenAddresses());
  await until(() => known(client) > 0);
  assert.equal((await outcome(client.routing.closestPeers(a.id.toMultihash().bytes, soon()))).failure, undefined);
  assert.ok(!(a.routing.dht?.lan.buckets() ?? []).some(({ peers }) => peers.some(({ id }) => id.equals(client.id))));
});

test("an unknown Routing.Type is refused", async () => {
  await assert.rejects(startNode({ config: { "Routing.Type": "odd" } }), {
    message: "unrecognized routing option: odd",
  });
  await assert.rejects(startNode({ config: { "Reprovider.Strategy": "odd" } }), {
    message: "unknown reprovider strategy 'odd'",
  });
});
