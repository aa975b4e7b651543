import assert from "node:assert/strict";
import { before, type TestContext, test } from "node:test";
import { IpnsPubsub, type IpnsPubsubDeps } from "#node/network/ipns/ipns_pubsub.ts";
import { recordTopic } from "#node/network/ipns_record/keys.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import { generateKey, type Key } from "#node/storage/keystore/key.ts";
import { Queue } from "#node/util/async/queue.ts";
import { NodeLog } from "#node/util/log.ts";
import { eventually } from "#test/support/eventually.ts";

const never = new AbortController().signal;

const record = async (sequence: bigint, lifetime = 3_600_000) => {
  const validity = formatTimestamp(timestampAfter(lifetime));
  return signRecord(key, { value: Buffer.from("/ipfs/bafkqaaa"), validity, sequence, ttl: 0n });
};
let key: Key;
let peer: Key["id"];
before(async () => {
  key = await generateKey({ type: "ed25519" });
  peer = (await generateKey({ type: "ed25519" })).id;
});

/** Topics without other participants; published messages are recorded. */
function start(t: TestContext, parts: Partial<IpnsPubsubDeps> = {}) {
  const topics = new Map<string, Queue<{ data: Uint8Array }>>();
  const published: Uint8Array[] = [];
  const followed = new IpnsPubsub({
    messages: {
      async publish(_, data) {
        published.push(data);
      },
      subscribe(topic, signal) {
        const queue = new Queue<{ data: Uint8Array }>();
        topics.set(topic, queue);
        signal.addEventListener("abort", () => {
          topics.delete(topic);
          queue.fail(signal.reason);
        });
        return queue;
      },
      peers: () => [],
    },
    validate: () => () => undefined,
    fetch: async () => undefined,
    published: async () => undefined,
    log: new NodeLog(),
    ...parts,
  });
  t.after(() => followed.stop());
  return { followed, topics, published };
}

test("the least recently used name is unsubscribed above 1024 names", async (t) => {
  const { followed, topics } = start(t);
  const keys = await Promise.all(Array.from({ length: 1030 }, () => generateKey({ type: "ed25519" })));
  const [first, second, ...others] = keys.map(({ id }) => id);
  const search = (id: typeof first) => Array.fromAsync(followed.search(id as NonNullable<typeof first>, never));
  await search(first);
  await search(second);
  for (const id of others) {
    await search(first);
    await search(id);
  }
  assert.equal(followed.list().length, 1024);
  assert.equal(topics.size, 1024);
  assert.ok(topics.has(recordTopic(first as NonNullable<typeof first>)));
  assert.ok(!topics.has(recordTopic(second as NonNullable<typeof first>)));
});

test("a name that is being searched stays subscribed", async (t) => {
  let response = (_: undefined) => {};
  const requests = new Promise<undefined>((resolve) => {
    response = resolve;
  });
  const { followed } = start(t, {
    fetch: () => requests,
    messages: { publish: async () => {}, subscribe: () => new Queue(), peers: () => [peer] },
  });
  const waiting = Array.fromAsync(followed.search(key.id, never));
  await Promise.resolve();
  assert.throws(() => followed.cancel(key.id), { message: "key has active subscriptions" });
  response(undefined);
  assert.deepEqual(await waiting, []);
  assert.equal(followed.cancel(key.id), true);
});

test("a peer that subscribes again and again is asked once a minute, for one name at a time", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "Date"], now: Date.now() });
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  const ids = await Promise.all(Array.from({ length: 3 }, async () => (await generateKey({ type: "ed25519" })).id));
  const waiting: (() => void)[] = [];
  let requests = 0;
  const fetch = async () => {
    requests += 1;
    await new Promise<void>((resolve) => waiting.push(resolve));
    return undefined;
  };
  const { followed } = start(t, { fetch });
  for (const id of ids) await Array.fromAsync(followed.search(id, never));
  const joinAll = async () => {
    for (let round = 0; round < 1000; round += 1) for (const id of ids) followed.peerSubscribed(recordTopic(id), peer);
    await settled();
  };
  const respondToAll = async () => {
    while (waiting.length > 0) {
      assert.equal(waiting.length, 1);
      waiting.pop()?.();
      await settled();
    }
  };
  await joinAll();
  t.mock.timers.tick(120_000);
  await joinAll();
  assert.equal(requests, 1, "more than one question at a time");
  await respondToAll();
  assert.equal(requests, 3);
  await joinAll();
  assert.equal(requests, 3);
  t.mock.timers.tick(60_000);
  await joinAll();
  await respondToAll();
  assert.equal(requests, 6);
});

test("the best record is published again each minute while it is valid, unless a peer has done so", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "Date"], now: Date.now() });
  const { followed, topics, published } = start(t);
  const settled = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
  const bytes = await record(1n, 170_000);
  await followed.publish(key.id, bytes);
  t.mock.timers.tick(60_000);
  await settled();
  assert.deepEqual(published, [bytes, bytes]);
  t.mock.timers.tick(40_000);
  topics.get(recordTopic(key.id))?.push({ data: bytes });
  await settled();
  t.mock.timers.tick(20_000);
  await settled();
  assert.equal(published.length, 2);
  t.mock.timers.tick(60_000);
  await settled();
  assert.equal(published.length, 2, "a record that has run out was told");
});

test("a record published here can be fetched while it is valid", async (t) => {
  const bytes = await record(4n);
  let stored = bytes;
  const { followed } = start(t, { published: async () => stored });
  const question = Buffer.concat([Buffer.from("/ipns/"), key.id.toMultihash().bytes]);
  assert.deepEqual(await followed.lookUp(question), bytes);
  stored = await record(5n, -1000);
  assert.equal(await followed.lookUp(question), undefined);
  await assert.rejects(followed.lookUp(Buffer.from("/pk/x")), { message: "invalid record keytype" });
});

test("a name stays subscribed, with a line in the log, when the own record of it cannot be read", async (t) => {
  const log = new NodeLog();
  log.setLevel("pubsub-valuestore", "warn");
  const lines: string[] = [];
  log.listen(({ message }) => lines.push(message));
  const { followed, topics } = start(t, { log, published: () => Promise.reject(new Error("the store is away")) });
  assert.deepEqual(await Array.fromAsync(followed.search(key.id, never)), []);
  await eventually("the reason is logged", () => lines.some((line) => line.endsWith("the store is away")));
  assert.equal(topics.size, 1);
});
