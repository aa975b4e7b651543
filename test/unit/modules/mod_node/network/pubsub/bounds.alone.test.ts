import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { generateKeyPair } from "@libp2p/crypto/keys";
import { RPC } from "@libp2p/gossipsub/message";
import { peerIdFromPrivateKey } from "@libp2p/peer-id";
import { MAX_RPC_SIZE } from "#node/network/pubsub/limits.ts";
import { lengthPrefixed, requireBounded, splitRpc } from "#node/network/pubsub/message.ts";
import { heapUsed } from "#test/support/heap.ts";
import { follow, joined, startNode, startStranger, take, textsOf } from "./support.ts";

const subscribed = (topic: string) => ({ subscriptions: [{ subscribe: true, topic }] });

/** Creates messages with the signature of a peer. */
async function author() {
  const key = await generateKeyPair("Ed25519");
  const from = peerIdFromPrivateKey(key).toMultihash().bytes;
  let number = 0n;
  return async (topic: string, data: Uint8Array): Promise<RPC.Message> => {
    const seqno = Buffer.alloc(8);
    seqno.writeBigUInt64BE(++number);
    const message = { from, data, seqno, topic };
    const signature = await key.sign(Buffer.concat([Buffer.from("libp2p-pubsub:"), RPC.Message.encode(message)]));
    return { ...message, signature };
  };
}

test("messages that are forged, unsigned or of unsubscribed topics are not delivered", async (t) => {
  const a = await startNode(t);
  const write = await author();
  const { say } = await startStranger(t, a);
  const reader = a.pubsub.subscribe("topic");
  const good = await write("topic", Buffer.from("good"));
  const forged = { ...(await write("topic", Buffer.from("true"))), data: Buffer.from("lie") };
  const { signature: _, ...unsigned } = await write("topic", Buffer.from("whose?"));
  const foreign = { ...(await write("topic", Buffer.from("mine"))), from: a.network.swarm.id.toMultihash().bytes };
  say({ messages: [forged, unsigned, foreign, await write("other", Buffer.from("elsewhere")), good, good] });
  say({ messages: [await write("topic", Buffer.from("last"))] });
  assert.deepEqual(textsOf(await take(reader, 2)), ["good", "last"]);
});

test("an RPC that is too long resets its stream, while the connection and new streams continue", async (t) => {
  const a = await startNode(t);
  const write = await author();
  const { stream, say, open, connection } = await startStranger(t, a);
  const reader = a.pubsub.subscribe("topic");
  const closed = once(stream, "close");
  say({ messages: [await write("topic", Buffer.alloc(MAX_RPC_SIZE, "x"))] });
  await closed;
  assert.equal(connection.status, "open");
  say({ messages: [await write("topic", Buffer.from("short"))] }, await open());
  assert.deepEqual(textsOf(await take(reader, 1)), ["short"]);
});

test("bytes that are not an RPC reset the stream", async (t) => {
  const { stream } = await startStranger(t, await startNode(t));
  const closed = once(stream, "close");
  stream.send(lengthPrefixed(Buffer.alloc(100, 0xff)));
  await closed;
});

test("an RPC of more fields than any peer sends resets its stream before it is decoded", async (t) => {
  const a = await startNode(t);
  const { stream, open } = await startStranger(t, a);
  const empty = (count: number, tag: number) => Buffer.alloc(count * 2, Buffer.from([tag, 0]));
  const within = (tag: number, bytes: Uint8Array) => Buffer.concat([Buffer.of(tag), lengthPrefixed(bytes)]);
  const shapes = {
    "empty authors": within(0x12, empty(100_000, 0x0a)),
    "ids of messages": within(0x1a, within(0x0a, empty(100_000, 0x12))),
    "lists of ids": within(0x1a, empty(100_000, 0x0a)),
  };
  let next = stream;
  for (const [what, bytes] of Object.entries(shapes)) {
    const closed = once(next, "close");
    next.send(lengthPrefixed(bytes));
    await closed;
    assert.throws(() => requireBounded(bytes), /more than 65536 fields/, what);
    next = await open();
  }
  requireBounded(within(0x1a, within(0x0a, empty(5000, 0x12))));
});

test("a peer that floods a topic is slowed down, and messages of others arrive meanwhile", async (t) => {
  const [a, b] = await Promise.all([startNode(t), startNode(t)]);
  const [reader] = await follow("topic", a, b);
  const write = await author();
  const { say, stream } = await startStranger(t, a);
  const data = Buffer.alloc(500_000, "flood");
  let said = 0;
  // 16 MiB are accepted at once, then 8 MiB per second, in addition to the window of the
  // multiplexer.
  while (!stream.writableNeedsDrain && said < 200) {
    say({ messages: [await write("topic", data)] });
    said += 1;
    if (said % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(stream.writableNeedsDrain, "the flood goes on unhindered");
  await b.pubsub.publish("topic", Buffer.from("from a good peer"));
  for await (const { data: received } of reader) if (received.length < 100) break;
});

test("the number of a peer's subscriptions is limited", async (t) => {
  const a = await startNode(t);
  const { say, libp2p } = await startStranger(t, a);
  const topics = Array.from({ length: 4000 }, (_, at) => `${at} ${"x".repeat(100)}`);
  const known = joined(a, topics[0] as string, libp2p);
  say({ subscriptions: topics.map((topic) => ({ subscribe: true, topic })) });
  await known;
  const stored = topics.filter((topic) => a.pubsub.peers(topic).length > 0).length;
  assert.ok(stored > 500 && stored < 1024, String(stored));
});

test("a subscriber that reads nothing does not block publishing for long, and its stream is opened again", async (t) => {
  const a = await startNode(t);
  const { say, libp2p } = await startStranger(t, a);
  const known = joined(a, "topic", libp2p);
  say(subscribed("topic"));
  await known;
  const reader = a.pubsub.subscribe("topic");
  const began = performance.now();
  for (let at = 0; at < 30; at += 1) await a.pubsub.publish("topic", Buffer.alloc(1_000_000, at));
  // One wait of five seconds for each stream that gets full, which is opened again after two
  // seconds.
  assert.ok(performance.now() - began < 100_000);
  assert.equal((await take(reader, 16)).length, 16);
  const again = Promise.withResolvers<void>();
  await libp2p.unhandle("/meshsub/1.1.0");
  await libp2p.handle("/meshsub/1.1.0", () => again.resolve());
  await again.promise;
});

test("messages that a peer asks for together are sent in RPCs of allowed length", () => {
  const messages = Array.from({ length: 5 }, (_, at) => ({ topic: "t", data: Buffer.alloc(400_000, at) }));
  const control = { ihave: [], iwant: [], graft: [{ topicID: "t" }], prune: [], idontwant: [] };
  const parts = splitRpc(
    lengthPrefixed(RPC.encode({ subscriptions: [{ subscribe: true, topic: "t" }], messages, control })),
  );
  const decoded = parts.map((part) => RPC.decode(part.subarray(3)));
  assert.deepEqual(
    decoded.map((rpc) => rpc.messages.length),
    [2, 2, 1],
  );
  assert.ok(parts.every(({ length }) => length <= MAX_RPC_SIZE + 3));
  assert.deepEqual(
    decoded.flatMap((rpc) => rpc.messages.map(({ data }) => data?.[0])),
    [0, 1, 2, 3, 4],
  );
  assert.deepEqual(
    decoded.map(({ subscriptions, control: reported }) => [subscriptions.length, reported?.graft.length]),
    [
      [1, 1],
      [0, undefined],
      [0, undefined],
    ],
  );
});

test("messages of many peers behind one address all arrive", async (t) => {
  const a = await startNode(t);
  const reader = a.pubsub.subscribe("topic");
  const write = await author();
  for (let count = 0; count < 18; count += 1) {
    const { say } = await startStranger(t, a);
    say({ ...subscribed("topic"), messages: [await write("topic", Buffer.from(`from ${count}`))] });
    assert.deepEqual(textsOf(await take(reader, 1)), [`from ${count}`]);
  }
  assert.equal(a.pubsub.peers("topic").length, 18);
});

test("a peer with a hundred thousand subscriptions and thousands of invalid messages a second blocks nobody", async (t) => {
  const [a, b] = await Promise.all([startNode(t), startNode(t)]);
  const [reader] = await follow("topic", a, b);
  const write = await author();
  const { say, stream } = await startStranger(t, a);
  const before = await heapUsed();
  for (let at = 0; at < 100_000; at += 1000) {
    const subscriptions = Array.from({ length: 1000 }, (_, more) => ({ subscribe: true, topic: `${at + more}` }));
    say({ subscriptions });
    if (at % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const lie = { ...(await write("topic", Buffer.from("true"))), data: Buffer.from("lie") };
  for (let count = 0; count < 30 && stream.status === "open"; count += 1) {
    say({ messages: Array.from({ length: 100 }, (_, at) => ({ ...lie, data: Buffer.from(`lie ${count} ${at}`) })) });
  }
  await b.pubsub.publish("topic", Buffer.from("from a good peer"));
  assert.deepEqual(textsOf(await take(reader, 1)), ["from a good peer"]);
  assert.ok((await heapUsed()) - before < 100 * 2 ** 20);
  const topics = Array.from({ length: 100 }, (_, at) => String(at * 1000));
  assert.ok(topics.filter((topic) => a.pubsub.peers(topic).length > 0).length <= 10, "most are not kept");
});
