import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create as createOld } from "ipfs-http-client";
import { create as createNew } from "kubo-rpc-client";
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startRpc } from "./support.ts";

const off = "experimental pubsub feature not enabled. Run daemon with --enable-pubsub-experiment to use.";

interface Message {
  readonly from?: string;
  readonly data?: string;
  readonly seqno?: string;
  readonly topicIDs: readonly string[];
}

const idOf = async (host: RpcHost) => (await host.value<{ ID: string }>("id")).ID;

async function connected(config: Record<string, unknown> = {}): Promise<[RpcHost, RpcHost]> {
  const [a, b] = await Promise.all([1, 2].map(() => startRpc({ node_offline: false, ...config })));
  assert.ok(a && b);
  const { Addresses } = await b.value<{ Addresses: string[] }>("id");
  await a.value(`swarm/connect?arg=${Addresses[0]}`);
  return [a, b];
}

/** Subscribes and resolves once the headers have arrived; then reads bytes up to `length`. */
async function subscribe(host: RpcHost, query: string) {
  const leaving = new AbortController();
  const url = `http://127.0.0.1:${host.http}/api/v0/pubsub/sub?${query}`;
  const response = await fetch(url, { method: "POST", signal: leaving.signal });
  assert.equal(response.status, 200);
  const pieces = (response.body as ReadableStream<Uint8Array>)[Symbol.asyncIterator]();
  let received: Buffer = Buffer.alloc(0);
  const more = async () => {
    const { value, done } = await pieces.next();
    assert.ok(done !== true, "the stream has ended");
    received = Buffer.concat([received, value]);
  };
  return {
    type: response.headers.get("content-type"),
    async line(): Promise<Message> {
      while (!received.includes("\n")) await more();
      const end = received.indexOf("\n");
      const line = received.subarray(0, end).toString();
      received = received.subarray(end + 1);
      return JSON.parse(line) as Message;
    },
    async bytes(length: number): Promise<string> {
      while (received.length < length) await more();
      return received.subarray(0, length).toString("latin1");
    },
    leave: () => leaving.abort(),
  };
}

/** Polls until the condition holds: other nodes learn of a subscription without a notification. */
async function seen(host: RpcHost, path: string, isSo: (strings: readonly string[]) => boolean): Promise<void> {
  await eventually(`${path} has the expected values`, async () => {
    const { Strings } = await host.value<{ Strings: string[] | null }>(path);
    return isSo(Strings ?? []);
  });
}

describe("pubsub in the form of 0.9", () => {
  let a: RpcHost;
  let b: RpcHost;
  before(async () => {
    [a, b] = await connected();
  });
  after(() => Promise.all([a, b].map((host) => host.stop())));

  test("messages arrive locally and remotely, with their sender and number", async () => {
    const own = await subscribe(a, "arg=news");
    const other = await subscribe(b, "arg=news&discover=true");
    const idA = await idOf(a);
    const idB = await idOf(b);
    await seen(a, "pubsub/peers?arg=news", (peers) => peers.length > 0);
    assert.deepEqual(await a.value("pubsub/peers?arg=news"), { Strings: [idB] });
    assert.deepEqual(await a.value("pubsub/peers"), { Strings: [idB] });
    assert.equal((await a.call("pubsub/peers?encoding=text")).text, `${idB}\n`);
    assert.deepEqual(await b.value("pubsub/peers?arg=other"), { Strings: [] });
    const { status, text } = await a.call("pubsub/pub?arg=news&arg=one&arg=%00%ff&arg=&arg=two%0Alines");
    assert.deepEqual([status, text], [200, ""]);
    await a.call("pubsub/pub?arg=news", { m: "from the body\nsecond line\n" });
    const sent = ["one", "\u0000\u00ff", "", "two\nlines", "from the body", "second line"];
    for (const data of sent) {
      const message = await other.line();
      assert.deepEqual(message, await own.line());
      assert.equal(Buffer.from(message.data ?? "", "base64").toString("latin1"), data);
      assert.equal("data" in message, data !== "");
      assert.deepEqual(message.topicIDs, ["news"]);
      assert.equal(Buffer.from(message.seqno as string, "base64").length, 8);
      const sender = Buffer.from(message.from as string, "base64");
      assert.equal(sender.toString("base64"), message.from);
      assert.equal(sender.subarray(0, 6).toString("hex"), "002408011220");
    }
    assert.notEqual(idA, idB);
    own.leave();
    other.leave();
  });

  test("topics are listed while they have subscribers", async () => {
    assert.deepEqual(await a.value("pubsub/ls"), { Strings: null });
    const readers = [await subscribe(a, "arg=x"), await subscribe(a, "arg=x"), await subscribe(a, "arg=a%00%5C")];
    assert.deepEqual(await a.value("pubsub/ls"), { Strings: ["x", "a\u0000\\"] });
    assert.equal((await a.call("pubsub/ls?encoding=text")).text, "x\na\\x00\\\\\n");
    await a.call("pubsub/pub?arg=published-only&arg=x");
    for (const reader of readers) reader.leave();
    await seen(a, "pubsub/ls", (topics) => topics.length === 0);
  });

  test("other encodings contain only the payloads", async () => {
    const encodings = [
      ["text", "one\u0000\u00ff"],
      ["ndpayload", "one\n\n\u0000\u00ff\n"],
      ["lenpayload", "\u0003one\u0000\u0002\u0000\u00ff"],
    ] as const;
    const readers = await Promise.all(encodings.map(([name]) => subscribe(a, `arg=raw&encoding=${name}`)));
    await a.call("pubsub/pub?arg=raw&arg=one&arg=&arg=%00%ff");
    for (const [at, reader] of readers.entries()) {
      const [, wanted] = encodings[at] as (typeof encodings)[number];
      assert.equal(await reader.bytes(wanted.length), wanted);
      assert.equal(reader.type, "text/plain");
      reader.leave();
    }
  });

  test("invalid calls are refused", async () => {
    assert.deepEqual(await a.failure("pubsub/pub?arg=t"), [400, 'argument "data" is required\n']);
    assert.deepEqual(await a.failure("pubsub/sub"), [400, 'argument "topic" is required\n']);
    assert.deepEqual(await a.failure("pubsub/sub?arg=%ff"), [500, "a topic must be valid UTF-8"]);
    const long = await a.failure("pubsub/pub?arg=t", { m: "x".repeat(2 ** 20) });
    assert.deepEqual(long, [500, "the message is too long: topic and data may have 1044480 bytes together"]);
    const { text } = await a.call("pubsub/sub?arg=t&timeout=50ms");
    assert.equal(text, "");
    assert.deepEqual(await a.value("pubsub/ls"), { Strings: null });
  });
});

test("without pubsub or a network, the error says how to enable it", async () => {
  const hosts = [await startRpc({ node_offline: false, node_pubsub: false }), await startRpc()];
  try {
    for (const host of hosts) {
      for (const path of ["pubsub/ls", "pubsub/peers", "pubsub/pub?arg=t&arg=x", "pubsub/sub?arg=t"]) {
        assert.deepEqual(await host.failure(path), [500, off]);
      }
    }
    const { Protocols } = await (hosts[0] as RpcHost).value<{ Protocols: string[] }>("id");
    assert.ok(!Protocols.some((protocol) => /meshsub|floodsub/.test(protocol)));
  } finally {
    await Promise.all(hosts.map((host) => host.stop()));
  }
});

/** The common part of both client libraries that is used here. */
interface Client {
  readonly pubsub: {
    subscribe(topic: string, handler: (message: ReceivedMessage) => void): Promise<void>;
    unsubscribe(topic: string, handler: (message: ReceivedMessage) => void): Promise<void>;
    publish(topic: string, data: Uint8Array): Promise<void>;
    ls(): Promise<readonly string[]>;
    peers(topic: string): Promise<readonly { toString(): string }[]>;
  };
}

interface ReceivedMessage {
  readonly topic: string;
  readonly data: Uint8Array;
  readonly from: { toString(): string };
  readonly sequenceNumber: bigint;
}

describe("pubsub in the form of later clients", () => {
  let a: RpcHost;
  let b: RpcHost;
  before(async () => {
    [a, b] = await connected({ api_pubsub_wire: "multibase" });
  });
  after(() => Promise.all([a, b].map((host) => host.stop())));
  const clients: Readonly<Record<string, (options: { url: string }) => unknown>> = {
    "kubo-rpc-client": createNew,
    "ipfs-http-client": createOld,
  };

  for (const [name, create] of Object.entries(clients)) {
    test(`every method of ${name} works`, async () => {
      const [here, there] = [a, b].map(({ http }) => create({ url: `http://127.0.0.1:${http}` }) as Client);
      assert.ok(here && there);
      const topic = `of ${name}, \u00e4`;
      const firstMessage = Promise.withResolvers<ReceivedMessage>();
      await there.pubsub.subscribe(topic, firstMessage.resolve);
      assert.deepEqual(await there.pubsub.ls(), [topic]);
      await eventually("the subscriber is known", async () => (await here.pubsub.peers(topic)).length > 0);
      assert.deepEqual((await here.pubsub.peers(topic)).map(String), [await idOf(b)]);
      const data = Uint8Array.of(0, 255, 10, 13, 65);
      await here.pubsub.publish(topic, data);
      const message = await firstMessage.promise;
      assert.deepEqual([...message.data], [...data]);
      assert.equal(message.topic, topic);
      assert.equal(message.from.toString(), await idOf(a));
      assert.ok(message.sequenceNumber > 1_000_000_000_000_000_000n);
      await there.pubsub.unsubscribe(topic, firstMessage.resolve);
      await eventually("the topic has no subscription", async () => (await there.pubsub.ls()).length === 0);
    });
  }

  test("topics and bytes are base64url in multibase", async () => {
    const reader = await subscribe(a, "arg=uYcOkIMO_");
    assert.deepEqual(await a.value("pubsub/ls"), { Strings: ["uYcOkIMO_"] });
    assert.equal((await a.call("pubsub/ls?encoding=text")).text, "a\u00e4 \u00ff\n");
    await a.call("pubsub/pub?arg=uYcOkIMO_", { data: "one\ntwo\n" });
    const { data, topicIDs, from } = await reader.line();
    assert.deepEqual([data, topicIDs, from], ["ub25lCnR3bwo", ["uYcOkIMO_"], await idOf(a)]);
    reader.leave();
  });

  test("other arguments are refused", async () => {
    assert.deepEqual(await a.failure("pubsub/pub?arg=ueA"), [400, "file argument 'data' is required\n"]);
    assert.deepEqual(await a.failure("pubsub/sub?arg=meA"), [500, "URL arg must be base64url encoded"]);
    const [status, text] = await a.failure("pubsub/sub?arg=!x");
    assert.equal(status, 500);
    assert.match(String(text), /^URL arg must be multibase encoded: /);
  });
});
