import assert from "node:assert/strict";
import { test } from "node:test";
import type { PubsubMessage } from "#node/network/pubsub/subscription.ts";
import { until } from "#test/unit/modules/mod_node/network/bitswap/support.ts";
import { connect, follow, joined, startNode, startStranger, take, textsOf } from "./support.ts";

test("messages reach all subscribers, the publisher included, in order and unchanged", async (t) => {
  const [a, b] = await Promise.all([startNode(t), startNode(t)]);
  const [own, other] = await follow("topic", a, b);
  const sent = ["one", "", "line\nbreak", "\u0000\u00ff", ...Array.from({ length: 500 }, (_, at) => `number ${at}`)];
  for (const text of sent) await a.pubsub.publish("topic", Buffer.from(text));
  const [here, there] = await Promise.all([take(own, sent.length), take(other, sent.length)]);
  assert.deepEqual(textsOf(here), sent);
  assert.deepEqual(textsOf(there), sent);
  const facts = ({ from, sequence }: PubsubMessage) => `${from} ${Buffer.from(sequence ?? []).toString("hex")}`;
  assert.deepEqual(there.map(facts), here.map(facts));
  const numbers = there.map(({ sequence }) => Buffer.from(sequence ?? []).readBigUInt64BE());
  for (const [at, number] of numbers.entries()) assert.equal(number, (numbers[0] as bigint) + BigInt(at));
  const aboutNow = Number((numbers[0] as bigint) / 1_000_000n) - Date.now();
  assert.ok(Math.abs(aboutNow) < 600_000, "numbers begin with the time of the start, in nanoseconds");
  assert.ok(there.every(({ from, topic }) => from?.equals(a.network.swarm.id) && topic === "topic"));
});

test("a node forwards messages to nodes beyond it", async (t) => {
  const [a, b, c] = await Promise.all([startNode(t), startNode(t), startNode(t)]);
  const [, middle] = await follow("chain", a, b);
  const [, end] = await follow("chain", b, c);
  const sent = Array.from({ length: 200 }, (_, at) => `message ${at}`);
  for (const text of sent) await a.pubsub.publish("chain", Buffer.from(text));
  assert.deepEqual(textsOf(await take(middle, sent.length)).sort(), [...sent].sort());
  const there = await take(end, sent.length);
  assert.deepEqual(textsOf(there).sort(), [...sent].sort());
  assert.ok(there.every(({ from }) => from?.equals(a.network.swarm.id)));
});

test("current topics and peers are listed", async (t) => {
  const [a, b] = await Promise.all([startNode(t), startNode(t)]);
  assert.deepEqual([a.pubsub.topics(), a.pubsub.peers(), a.pubsub.peers("x")], [[], [], []]);
  const first = a.pubsub.subscribe("x");
  const second = a.pubsub.subscribe("x");
  const leaving = new AbortController();
  const third = a.pubsub.subscribe("y", leaving.signal);
  await b.pubsub.publish("published only", Buffer.from("nobody is there"));
  const known = [joined(b, "x", a), joined(b, "y", a)];
  await connect(b, a);
  await Promise.all(known);
  assert.deepEqual([a.pubsub.topics(), b.pubsub.topics()], [["x", "y"], []]);
  assert.deepEqual(b.pubsub.peers().map(String), [String(a.network.swarm.id)]);
  assert.deepEqual(b.pubsub.peers("x").map(String), [String(a.network.swarm.id)]);
  assert.deepEqual(b.pubsub.peers("z"), []);

  await first.return?.();
  assert.deepEqual(a.pubsub.topics(), ["x", "y"]);
  await second.return?.();
  leaving.abort(new Error("enough"));
  await assert.rejects(third.next(), { message: "enough" });
  assert.deepEqual(a.pubsub.topics(), []);
  assert.throws(() => a.pubsub.subscribe("y", leaving.signal), { message: "enough" });
});

test("a message that is too long is refused; the longest allowed arrives", async (t) => {
  const [a, b] = await Promise.all([startNode(t), startNode(t)]);
  const [, other] = await follow("big", a, b);
  await assert.rejects(a.pubsub.publish("big", Buffer.alloc(1_044_480 - 2)), {
    message: "the message is too long: topic and data may have 1044480 bytes together",
  });
  const data = Buffer.alloc(1_044_480 - 3, "x");
  await a.pubsub.publish("big", data);
  const [message] = await take(other, 1);
  assert.ok(message !== undefined && Buffer.from(message.data).equals(data));
});

test("a slow reader misses the oldest messages, which is logged; others miss nothing", async (t) => {
  const a = await startNode(t);
  const slow = a.pubsub.subscribe("much");
  const quick = a.pubsub.subscribe("much");
  const read = take(quick, 40);
  for (let at = 0; at < 40; at += 1) await a.pubsub.publish("much", Buffer.alloc(1_000_000, at));
  assert.deepEqual(
    (await read).map(({ data }) => data[0]),
    Array.from({ length: 40 }, (_, at) => at),
  );
  // 16 MiB are queued for a reader.
  assert.deepEqual(
    (await take(slow, 16)).map(({ data }) => data[0]),
    Array.from({ length: 16 }, (_, at) => at + 24),
  );
  assert.ok(a.logged.includes("warn a slow reader of much missed 1 message"));
});

test("subscriptions end with the node", async (t) => {
  const a = await startNode(t);
  const reader = a.pubsub.subscribe("end");
  await a.pubsub.publish("end", Buffer.from("last"));
  const reading = Array.fromAsync(reader);
  await a.node.close();
  assert.deepEqual(textsOf(await reading), ["last"]);
});

test("subscribers of a topic find each other through the routing system", async (t) => {
  const [a, b, c] = await Promise.all([startNode(t), startNode(t), startNode(t)]);
  await connect(a, b);
  await connect(c, b);
  const known = joined(c, "rare", a);
  const reader = a.pubsub.subscribe("rare");
  c.pubsub.subscribe("rare");
  await known;
  await c.pubsub.publish("rare", Buffer.from("found"));
  assert.deepEqual(textsOf(await take(reader, 1)), ["found"]);
});

test("floodsub delivers messages by itself and between gossipsub peers", async (t) => {
  const flooding = { "Pubsub.Router": "floodsub" };
  const [a, b, c] = await Promise.all([startNode(t, flooding), startNode(t, flooding), startNode(t)]);
  const protocols = a.network.libp2p.getProtocols();
  assert.ok(protocols.includes("/floodsub/1.0.0") && !protocols.some((each) => each.startsWith("/meshsub/")));
  const [first] = await follow("flood", a, b);
  const [, last] = await follow("flood", b, c);
  await c.pubsub.publish("flood", Buffer.from("from c"));
  assert.deepEqual(textsOf(await take(first, 1)), ["from c"]);
  await a.pubsub.publish("flood", Buffer.from("from a"));
  assert.deepEqual(textsOf(await take(last, 2)), ["from c", "from a"]);
});

test("an unknown router is refused", async (t) => {
  await assert.rejects(startNode(t, { "Pubsub.Router": "odd" }), { message: "unknown pubsub router odd" });
});

for (const routed of ["gossipsub", "floodsub"]) {
  test(`over ${routed} unsigned messages name their author, reach unsigned nodes beyond others, and no signing node`, async (t) => {
    const unsigned = { "Pubsub.DisableSigning": true, "Pubsub.Router": routed };
    const [a, b, c, d] = await Promise.all([1, 2, 3, 4].map(() => startNode(t, unsigned)));
    const signing = await startNode(t, { "Pubsub.Router": routed });
    assert.ok(a && b && c && d);
    const [own, middle] = await follow("plain", a, b);
    const [, end] = await follow("plain", b, c);
    const [, strict] = await follow("plain", b, signing);
    // A publisher need not be a subscriber.
    const known = joined(d, "plain", b);
    await connect(d, b);
    await known;
    const sent = [..."abcdefgh", "the same", "the same", ""];
    for (const text of sent) await a.pubsub.publish("plain", Buffer.from(text));
    for (const reader of [own, middle, end]) {
      const received = await take(reader, sent.length);
      assert.deepEqual(textsOf(received).sort(), [...sent].sort());
      assert.ok(received.every(({ from }) => from?.equals(a.network.swarm.id)));
      assert.equal(
        new Set(received.map(({ sequence }) => Buffer.from(sequence ?? []).toString("hex"))).size,
        sent.length,
      );
    }
    await d.pubsub.publish("plain", Buffer.from("from outside"));
    assert.deepEqual(textsOf(await take(end, 1)), ["from outside"]);
    await signing.pubsub.publish("plain", Buffer.from("signed"));
    assert.deepEqual(textsOf(await take(strict, 1)), ["signed"]);
    await a.pubsub.publish("plain", Buffer.from("last"));
    assert.deepEqual(textsOf(await take(end, 1)), ["last"]);
  });
}

test("unsigned messages without an author are distinguished by their contents", async (t) => {
  const a = await startNode(t, { "Pubsub.DisableSigning": true });
  const { say } = await startStranger(t, a);
  const reader = a.pubsub.subscribe("plain");
  const message = (text: string) => ({ topic: "plain", data: Buffer.from(text) });
  say({ messages: [message("one"), message("one"), message("two")] });
  const received = await take(reader, 2);
  assert.deepEqual(textsOf(received), ["one", "two"]);
  assert.deepEqual([received[0]?.from, received[0]?.sequence], [undefined, undefined]);
});

test("a peer that reconnects many times keeps its subscriptions, and its messages arrive", async (t) => {
  const [a, b] = await Promise.all([startNode(t), startNode(t)]);
  const [reader] = await follow("topic", a, b);
  const know = (others: number) => () => [a, b].every(({ pubsub }) => pubsub.peers("topic").length === others);
  for (let times = 0; times < 8; times += 1) {
    await a.network.libp2p.hangUp(b.network.swarm.id);
    await until(know(0), "the peers are disconnected");
    await connect(b, a);
    await until(know(1), "the peers know each other again");
    await b.pubsub.publish("topic", Buffer.from(`message ${times}`));
    assert.deepEqual(textsOf(await take(reader, 1)), [`message ${times}`]);
  }
});
