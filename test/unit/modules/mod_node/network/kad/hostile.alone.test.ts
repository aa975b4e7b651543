import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import type { Libp2p, Stream } from "@libp2p/interface";
import { recordKey } from "#node/network/ipns_record/keys.ts";
import { decodeRecord, encodeRecord } from "#node/network/ipns_record/record.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import { generateKey, type Key } from "#node/storage/keystore/key.ts";
import { heapUsed } from "#test/support/heap.ts";
import { field, framed } from "#test/support/protobuf.ts";
import { blockOf, host } from "#test/unit/modules/mod_node/network/bitswap/support.ts";
import {
  add,
  known,
  meet,
  outcome,
  providersIn,
  type RoutingNode,
  soon,
  startNode,
  until,
  untilProvided,
} from "./support.ts";

const protocol = "/ipfs/lan/kad/1.0.0";
const types = { putValue: 0, getValue: 1, addProvider: 2, getProviders: 3, findNode: 4 } as const;
const hour = 3_600_000;

const message = (type: number, key: Uint8Array, ...more: Uint8Array[]) =>
  Buffer.concat([Buffer.from([8, type]), field(2, key), ...more]);

const putting = (key: Uint8Array, value: Uint8Array) =>
  message(types.putValue, key, field(3, Buffer.concat([field(1, key), field(2, value)])));

/** Field numbers of a message: the peers closest to a key, and its providers. */
const closer = 8;
const providing = 9;
const peerIn = (number: number, id: Uint8Array, addresses: readonly Uint8Array[]) =>
  field(number, Buffer.concat([field(1, id), ...addresses.map((address) => field(2, address))]));

/** A peer that sends arbitrary messages to a node that has it in its table. */
async function speaker(t: TestContext, { network }: RoutingNode) {
  const libp2p: Libp2p = await host(t);
  const connection = await libp2p.dial([...network.libp2p.getMultiaddrs()]);
  /** Resolves to whether the message got a response before the stream ended. */
  const say = async (bytes: Uint8Array): Promise<boolean> => {
    const stream: Stream = await connection.newStream(protocol);
    const responded = once(stream as never, "message").then(() => true);
    const ended = Promise.race(["close", "remoteCloseWrite"].map((event) => once(stream as never, event))).then(
      () => false,
    );
    stream.send(bytes);
    const either = await Promise.race([responded, ended]);
    stream.abort(new Error("said"));
    return either;
  };
  return { libp2p, connection, say };
}

const claim = (sequence: bigint, milliseconds = hour, path = "/ipfs/bafkqaaa") => ({
  value: Buffer.from(path),
  validity: formatTimestamp(timestampAfter(milliseconds)),
  sequence,
  ttl: 0n,
});

test("only valid IPNS records are stored, and none replaces a better one", async (t) => {
  await using a = await startNode();
  const { say } = await speaker(t, a);
  const key = await generateKey({ type: "ed25519" });
  const stranger: Key = await generateKey({ type: "ed25519" });
  const at = recordKey(key.id);
  const good = await signRecord(key, claim(7n));
  const forged = encodeRecord({ ...decodeRecord(good), value: Buffer.from("/ipfs/bafkqaab"), sequence: 9n });
  const lies: Readonly<Record<string, Buffer>> = {
    forged: putting(at, forged),
    "of another key": putting(at, await signRecord(stranger, claim(9n))),
    "run out": putting(at, await signRecord(key, claim(9n, -hour))),
    "too long": putting(at, Buffer.concat([good, randomBytes(1_000_000)])),
    nothing: putting(at, Buffer.alloc(0)),
    "without a record": message(types.putValue, at),
  };
  for (const [what, lie] of Object.entries(lies)) assert.equal(await say(framed(lie)), false, what);
  assert.equal(await a.routing.localValue(at), undefined);
  assert.equal(await say(framed(putting(at, good))), true);
  for (const [what, lie] of Object.entries(lies)) assert.equal(await say(framed(lie)), false, what);
  assert.equal(await say(framed(putting(at, await signRecord(key, claim(3n))))), false, "replayed");
  assert.deepEqual(Buffer.from((await a.routing.localValue(at)) ?? []), Buffer.from(good));
  const next = await signRecord(key, claim(8n));
  assert.equal(await say(framed(putting(at, next))), true);
  assert.deepEqual(Buffer.from((await a.routing.localValue(at)) ?? []), Buffer.from(next));
});

test("records of other namespaces are not stored", async (t) => {
  await using a = await startNode();
  const { say } = await speaker(t, a);
  for (const name of ["/evil/x", "/pk/x", "/ipns/", "x", "", "/".repeat(500), "/__proto__/x", "/constructor/x"]) {
    const key = Buffer.from(name);
    assert.equal(await say(framed(putting(key, Buffer.from("value")))), false, name);
    assert.equal(await a.routing.localValue(key).catch(() => undefined), undefined, name);
  }
});

test("a peer can provide only for itself, and its addresses are bounded", async (t) => {
  await using a = await startNode();
  await using b = await startNode();
  await meet(b, a);
  const { say, libp2p } = await speaker(t, a);
  const { cid } = blockOf(Buffer.from("who has it?"));
  const own = libp2p.peerId.toMultihash().bytes;
  const others = Array.from({ length: 10_000 }, () => Buffer.concat([Buffer.from([0x12, 0x20]), randomBytes(32)]));
  const address = (at: number) => Buffer.from([4, 127, 0, at >> 8, at & 255, 6, 0x10, at & 255]);
  const addresses = Array.from({ length: 10_000 }, (_, at) => address(at));
  const announcing = message(
    types.addProvider,
    cid.multihash.bytes,
    ...others.map((id) => peerIn(providing, id, [address(1)])),
  );
  const stream = await (await libp2p.dial([...a.network.libp2p.getMultiaddrs()])).newStream(protocol);
  stream.send(framed(announcing));
  for (let times = 0; times < 4; times += 1) {
    stream.send(
      framed(message(types.addProvider, cid.multihash.bytes, peerIn(providing, own, addresses.slice(times * 2500)))),
    );
  }
  // This message is handled after the previous ones.
  const responded = once(stream as never, "message");
  stream.send(framed(message(types.getProviders, cid.multihash.bytes)));
  await responded;
  const { addresses: stored } = await a.network.libp2p.peerStore.get(libp2p.peerId);
  assert.ok(stored.length > 0 && stored.length <= 128, `${stored.length} addresses`);
  const { events } = await outcome(b.routing.findProviders(cid, { count: 100, signal: soon() }));
  assert.deepEqual([...new Set(providersIn(events))], [String(libp2p.peerId)]);
  assert.equal(await say(framed(message(types.findNode, own))), true);
});

test("records that arrive together are all stored, with the address of the peer", async (t) => {
  await using a = await startNode();
  await using b = await startNode();
  await meet(b, a);
  const { connection, libp2p } = await speaker(t, a);
  const storedAddresses = async () => {
    const known = await a.network.libp2p.peerStore.get(libp2p.peerId).catch(() => undefined);
    return (known?.addresses ?? []).map(({ multiaddr }) => `${multiaddr}`);
  };
  // The addresses that the peer reports replace the known ones.
  await until(async () => (await storedAddresses()).length > 0);
  const cids = Array.from({ length: 50 }, (_, at) => blockOf(Buffer.from(`block ${at}`)).cid);
  const self = peerIn(providing, libp2p.peerId.toMultihash().bytes, [Buffer.from([4, 127, 0, 0, 9, 6, 0x10, 1])]);
  const stream = await connection.newStream(protocol);
  stream.send(Buffer.concat(cids.map(({ multihash }) => framed(message(types.addProvider, multihash.bytes, self)))));
  for (const cid of cids) {
    await until(async () => {
      const { events } = await outcome(b.routing.findProviders(cid, { count: 1, signal: soon() }));
      return providersIn(events).includes(String(libp2p.peerId));
    });
  }
  await until(async () => (await storedAddresses()).includes("/ip4/127.0.0.9/tcp/4097"));
});

test("malformed messages reset their stream, and other peers are not affected", async (t) => {
  await using a = await startNode();
  await using b = await startNode();
  await meet(b, a);
  const { say, connection } = await speaker(t, a);
  const key = randomBytes(32);
  const shapes: Readonly<Record<string, Buffer>> = {
    garbage: framed(randomBytes(1000)),
    "of no type that there is": framed(message(99, key)),
    "of ten megabytes": framed(Buffer.alloc(10_000_000)),
    "with a length beyond all bounds": Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
    "providers without an id": framed(message(types.addProvider, key, field(9, Buffer.alloc(0)))),
    "providers of what is no block": framed(message(types.getProviders, Buffer.from([1]))),
    "a record under an empty key": framed(putting(Buffer.alloc(0), Buffer.from("value"))),
    "a record under a key of a megabyte": framed(putting(Buffer.alloc(2 ** 20, "/ipns/"), Buffer.from("value"))),
    "a record that is asked for by a key of a megabyte": framed(message(types.getValue, Buffer.alloc(2 ** 20))),
    "providers of a key of a megabyte": framed(message(types.addProvider, Buffer.alloc(2 ** 20, 1))),
    "a record that is none": framed(message(types.putValue, key, field(3, randomBytes(100)))),
  };
  const before = process.memoryUsage().rss;
  for (const [what, bytes] of Object.entries(shapes)) assert.equal(await say(bytes), false, what);
  // Streams on which no complete message ever arrives.
  const open = await Promise.allSettled(
    Array.from({ length: 200 }, async () => (await connection.newStream(protocol)).send(Buffer.from([100, 8]))),
  );
  assert.equal(open.length, 200);
  assert.ok(process.memoryUsage().rss - before < 200 * 2 ** 20);
  const cid = await add(b, "from a good peer");
  await Array.fromAsync(b.routing.provide(cid, soon()));
  await untilProvided(a, cid, b);
});

/** A peer in the table of a node that responds to every request with `lies`. */
async function liar(t: TestContext, a: RoutingNode, lies: readonly Uint8Array[]): Promise<{ requests: number }> {
  const libp2p: Libp2p = await host(t);
  const received = { requests: 0 };
  await libp2p.handle(protocol, (stream) => {
    stream.addEventListener("message", ({ data }) => {
      received.requests += 1;
      const said = (data instanceof Uint8Array ? data : data.subarray()).subarray(1);
      stream.send(framed(Buffer.concat([said, ...lies])));
    });
  });
  await libp2p.handle("/ipfs/ping/1.0.0", (stream) => {
    stream.addEventListener("message", ({ data }) => stream.send(data));
  });
  await a.network.swarm.connect(libp2p.peerId, libp2p.getMultiaddrs());
  return received;
}

const nowhere = Buffer.from([4, 127, 0, 0, 1, 6, 0, 9]);
const strangers = (count: number) =>
  Array.from({ length: count }, () => Buffer.concat([Buffer.from([0x12, 0x20]), randomBytes(32)]));

test("a response with thousands of peers does not block a query", async (t) => {
  await using a = await startNode();
  await using b = await startNode();
  const made = strangers(5000);
  const received = await liar(
    t,
    a,
    [closer, providing].flatMap((number) => made.map((id) => peerIn(number, id, [nowhere]))),
  );
  await meet(b, a);
  await until(() => known(a) === 2);
  const cid = await add(b, "among lies");
  await Array.fromAsync(b.routing.provide(cid, soon()));
  const before = await heapUsed();
  const few = await outcome(a.routing.findProviders(cid, { count: 20, signal: soon() }));
  assert.equal(new Set(providersIn(few.events)).size, 20);
  await until(async () => {
    const many = await outcome(a.routing.findProviders(cid, { count: 100_000, signal: soon() }));
    assert.equal(many.failure, undefined);
    return providersIn(many.events).includes(String(b.id));
  });
  const near = await outcome(a.routing.closestPeers(b.id.toMultihash().bytes, soon()));
  assert.equal(near.failure, undefined);
  assert.ok(received.requests > 0);
  assert.ok((await heapUsed()) - before < 200 * 2 ** 20);
  assert.ok((await a.network.libp2p.peerStore.all()).length < 1000, "few of those that are named are remembered");
});

test("responses with hundreds of thousands of addresses do not stop the node", async (t) => {
  await using a = await startNode();
  const addresses = Array.from({ length: 300_000 }, (_, at) => Buffer.from([4, 127, at >> 16, at >> 8, at, 6, 16, 1]));
  const received = await liar(t, a, [peerIn(closer, strangers(1)[0] as Buffer, addresses)]);
  await until(() => known(a) === 1);
  // Measures the CPU time of this thread, because a busy machine may suspend it for any time.
  let last = process.threadCpuUsage();
  let most = 0;
  const look = () => {
    const { user, system } = process.threadCpuUsage(last);
    most = Math.max(most, (user + system) / 1000);
    last = process.threadCpuUsage();
  };
  const looks = setInterval(look, 5);
  t.after(() => clearInterval(looks));
  await outcome(a.routing.closestPeers(strangers(1)[0] as Buffer, soon()));
  look();
  assert.ok(received.requests > 0);
  assert.ok(most < 1500, `it stood still for ${most} ms`);
});

test("messages of more parts than any table has are not decoded", async (t) => {
  await using a = await startNode();
  const { say, libp2p } = await speaker(t, a);
  const own = libp2p.peerId.toMultihash().bytes;
  const empty = (count: number, field: number) => Buffer.alloc(count * 2, Buffer.from([field * 8 + 2, 0]));
  const long = peerIn(providing, own, [Buffer.alloc(300_000, Buffer.from([4, 127, 0, 0, 1, 6, 0, 1]))]);
  const pending = message(types.findNode, own);
  const shapes: Readonly<Record<string, Buffer>> = {
    "many peers": Buffer.concat([pending, empty(100_000, closer)]),
    "many addresses": Buffer.concat([pending, field(providing, empty(100_000, 2))]),
    "a long address": Buffer.concat([pending, long]),
    "two megabytes": Buffer.concat([pending, field(3, Buffer.alloc(2 ** 21))]),
  };
  for (const [what, bytes] of Object.entries(shapes)) assert.equal(await say(framed(bytes)), false, what);
  assert.equal(await say(framed(Buffer.concat([pending, empty(10_000, closer)]))), true);
});
