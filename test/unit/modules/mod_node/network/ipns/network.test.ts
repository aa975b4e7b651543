import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchOf } from "#node/network/ipns/fetch_protocol.ts";
import type { IpnsPubsub } from "#node/network/ipns/ipns_pubsub.ts";
import { recordKey, recordTopic } from "#node/network/ipns_record/keys.ts";
import { decodeRecord, encodeRecord } from "#node/network/ipns_record/record.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import type { Pubsub } from "#node/network/pubsub/pubsub.ts";
import { generateKey, type Key } from "#node/storage/keystore/key.ts";
import {
  meet,
  type NodeSetup,
  type RoutingNode,
  soon,
  startNode,
  until,
} from "#test/unit/modules/mod_node/network/kad/support.ts";

const empty = "/ipfs/QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const other = "/ipfs/bafkqaaa";
const hour = 3_600_000;

/** Only uses pubsub. */
const pubsubOnly: NodeSetup = {
  config: { "Routing.Type": "none" },
  options: { pubsub: true, namesOverPubsub: true },
};

const connect = (one: RoutingNode, two: RoutingNode) =>
  one.network.swarm.connect(two.id, two.network.swarm.listenAddresses());
const self = ({ node }: RoutingNode) => node.names.key("self");
const followedOf = async ({ node }: RoutingNode) => (await node.names.pubsub()) as IpnsPubsub;
const pubsubOf = ({ network }: RoutingNode) => network.pubsub as Pubsub;
const resolveOn = ({ node }: RoutingNode, name: { toString(): string }, nocache = true) =>
  node.names.resolve(name.toString(), { signal: soon(), nocache });

/** Resolves when `one` knows that the other follows the name. */
const follows = (one: RoutingNode, two: RoutingNode, name: Key) =>
  until(() =>
    pubsubOf(one)
      .peers(recordTopic(name.id))
      .some((id) => id.equals(two.id)),
  );

const recordOf = (key: Key, sequence: bigint, path = other) =>
  signRecord(key, { value: Buffer.from(path), validity: formatTimestamp(timestampAfter(hour)), sequence, ttl: 0n });

test("a published name is resolved by other nodes over the DHT, also by later ones", async () => {
  await using a = await startNode();
  await using b = await startNode();
  await meet(a, b);
  const key = await self(a);
  assert.equal(await a.node.names.publish(key, `${empty}/`, { signal: soon() }), `${empty}/`);
  assert.equal(await resolveOn(b, key.id), `${empty}/`);
  assert.equal(String((await b.node.resolve(`/ipns/${key.id}`, { signal: soon() })).cid), empty.slice(6));
  await using c = await startNode();
  await meet(c, b);
  assert.equal(await resolveOn(c, `${key.id}/x`), `${empty}/x`);
  // The record stays at the peers that were asked to store it.
  assert.equal(await b.node.names.resolve(key.id.toString(), { offline: true }), `${empty}/`);
  assert.equal(await a.node.names.pubsub(), undefined);
});

test("names of RSA keys are published with their keys", async () => {
  await using a = await startNode();
  await using b = await startNode();
  await meet(a, b);
  await a.node.keys.generate("long", { type: "rsa" });
  const key = await a.node.names.key("long");
  await a.node.names.publish(key, empty, { signal: soon() });
  assert.equal(await resolveOn(b, key.id), empty);
  const stored = await b.routing.localValue(Buffer.concat([Buffer.from("/pk/"), key.id.toMultihash().bytes]));
  assert.deepEqual(stored && Buffer.from(stored), Buffer.from(key.publicKey));
});

test("publishing fails without peers, and the record is stored locally", async () => {
  await using a = await startNode();
  const key = await self(a);
  await assert.rejects(a.node.names.publish(key, other, { signal: soon() }), {
    message: "failed to find any peer in table",
  });
  assert.equal(await resolveOn(a, key.id), other);
  await assert.rejects(a.node.names.publish(key, other, { lifetime: hour, signal: soon() }), {
    message: "can't replace a newer value with an older value",
  });
});

test("publishing without peers succeeds if the caller allows it, and the record is stored locally", async () => {
  await using a = await startNode();
  const key = await self(a);
  assert.equal(await a.node.names.publish(key, other, { allowOffline: true, signal: soon() }), other);
  assert.equal(await resolveOn(a, key.id), other);
  const older = { lifetime: hour, allowOffline: true, signal: soon() };
  await assert.rejects(a.node.names.publish(key, other, older), {
    message: "can't replace a newer value with an older value",
  });
});

test("a key that was used on another node continues its sequence", async () => {
  await using a = await startNode();
  await using b = await startNode();
  await meet(a, b);
  const key = await generateKey({ type: "ed25519" });
  await a.node.keys.import("shared", key.bytes);
  await b.node.keys.import("shared", key.bytes);
  await b.routing.putQuietly(recordKey(key.id), await recordOf(key, 41n), soon());
  await a.node.names.publish(key, empty, { signal: soon() });
  assert.equal(await resolveOn(b, key.id), empty);
  const stored = (await b.routing.localValue(recordKey(key.id))) as Uint8Array;
  assert.equal(decodeRecord(stored).sequence, 42n);
});

test("a name is cached for the TTL of its record", async () => {
  await using a = await startNode();
  await using b = await startNode();
  await meet(a, b);
  const [brief, lasting] = await Promise.all(
    ["brief", "lasting"].map(async (name) => {
      await a.node.keys.generate(name, { type: "ed25519" });
      return a.node.names.key(name);
    }),
  );
  await a.node.names.publish(brief as Key, empty, { signal: soon() });
  await a.node.names.publish(lasting as Key, empty, { ttl: hour, signal: soon() });
  for (const key of [brief, lasting] as Key[]) {
    assert.equal(await resolveOn(b, key.id, false), empty);
    await a.node.names.publish(key, other, { signal: soon() });
  }
  assert.equal(await resolveOn(b, (brief as Key).id, false), other);
  assert.equal(await resolveOn(b, (lasting as Key).id, false), empty);
  assert.equal(await resolveOn(b, (lasting as Key).id), other);
});

test("without a DHT names can be neither published nor found", async () => {
  await using a = await startNode({ config: { "Routing.Type": "none" } });
  const key = await generateKey({ type: "ed25519" });
  await assert.rejects(resolveOn(a, key.id), { message: "routing: not found" });
  await assert.rejects(a.node.names.publish(await self(a), other), {
    message: "routing: operation or key not supported",
  });
});

test("a name is resolved over pubsub alone, by new and by old subscribers", async () => {
  await using a = await startNode(pubsubOnly);
  await using b = await startNode(pubsubOnly);
  const key = await self(a);
  await connect(a, b);
  await assert.rejects(resolveOn(b, key.id), { message: "could not resolve name" });
  assert.deepEqual((await followedOf(b)).list().map(String), [key.id.toString()]);
  await follows(a, b, key);
  await a.node.names.publish(key, empty);
  await until(() =>
    resolveOn(b, key.id).then(
      (path) => path === empty,
      () => false,
    ),
  );
  await a.node.names.publish(key, other);
  await until(async () => (await resolveOn(b, key.id)) === other);
  // A later subscriber fetches the record.
  await using c = await startNode(pubsubOnly);
  await connect(c, b);
  await follows(c, b, key);
  assert.equal(await resolveOn(c, key.id), other);
});

test("the record is fetched from a peer that subscribes while a search waits", async () => {
  await using a = await startNode(pubsubOnly);
  await using b = await startNode(pubsubOnly);
  const key = await self(a);
  await a.node.names.publish(key, empty);
  await assert.rejects(resolveOn(b, key.id), { message: "could not resolve name" });
  await connect(a, b);
  await until(() =>
    resolveOn(b, key.id).then(
      (path) => path === empty,
      () => false,
    ),
  );
});

test("forged and replayed records are neither used nor forwarded", async () => {
  await using a = await startNode(pubsubOnly);
  await using b = await startNode(pubsubOnly);
  await using c = await startNode(pubsubOnly);
  const key = await generateKey({ type: "ed25519" });
  await connect(a, b);
  await connect(b, c);
  for (const each of [a, b, c]) await resolveOn(each, key.id).catch(() => undefined);
  for (const [one, two] of [
    [a, b],
    [b, c],
  ] as const) {
    await follows(one, two, key);
    await follows(two, one, key);
  }
  const topic = recordTopic(key.id);
  const received: string[] = [];
  const leave = new AbortController();
  const hearing = (async () => {
    for await (const { data } of pubsubOf(c).subscribe(topic, leave.signal))
      received.push(Buffer.from(data).toString("hex"));
  })().catch(() => undefined);
  const old = await recordOf(key, 3n, empty);
  const good = await recordOf(key, 7n);
  const forged = encodeRecord({ ...decodeRecord(good), value: Buffer.from("/ipfs/bafkqaab"), sequence: 9n });
  const foreign = await recordOf(await generateKey({ type: "ed25519" }), 10n);
  const late = { value: Buffer.from(empty), validity: formatTimestamp(timestampAfter(-hour)), sequence: 11n, ttl: 0n };
  const bad = [old, forged, foreign, await signRecord(key, late), Buffer.alloc(100_000), Buffer.from("x")];
  await pubsubOf(a).publish(topic, good);
  await until(async () => (await resolveOn(c, key.id).catch(() => "")) === other);
  for (const record of bad) await pubsubOf(a).publish(topic, record);
  const next = await recordOf(key, 12n, empty);
  await pubsubOf(a).publish(topic, next);
  await until(async () => (await resolveOn(c, key.id)) === empty);
  leave.abort();
  await hearing;
  assert.deepEqual(
    received,
    [good, next].map((record) => Buffer.from(record).toString("hex")),
  );
});

test("records can be fetched from peers that have them, and forged ones are ignored", async () => {
  await using a = await startNode(pubsubOnly);
  await using b = await startNode(pubsubOnly);
  const key = await self(a);
  const unknown = await generateKey({ type: "ed25519" });
  await a.node.names.publish(key, empty);
  await connect(b, a);
  const ask = (name: Key) => fetchOf(b.network.libp2p)?.fetch(a.id, recordKey(name.id), { signal: soon() });
  const reported = decodeRecord((await ask(key)) as Uint8Array);
  assert.equal(Buffer.from(reported.value).toString(), empty);
  assert.equal(await ask(unknown), undefined);
  const fetch = fetchOf(a.network.libp2p);
  fetch?.unregisterLookupFunction("/ipns/");
  fetch?.registerLookupFunction("/ipns/", async () => recordOf(unknown, 99n));
  await follows(b, a, key);
  await assert.rejects(resolveOn(b, key.id), { message: "could not resolve name" });
});

test("a cancelled name leaves its topic", async () => {
  await using a = await startNode(pubsubOnly);
  const key = await self(a);
  await a.node.names.publish(key, empty);
  const followed = await followedOf(a);
  assert.deepEqual(pubsubOf(a).topics(), [recordTopic(key.id)]);
  assert.equal(followed.cancel(key.id), true);
  assert.equal(followed.cancel(key.id), false);
  await until(() => pubsubOf(a).topics().length === 0);
  assert.deepEqual(followed.list(), []);
});
