import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { Libp2p, Stream } from "@libp2p/interface";
import { encodeMessage } from "#node/network/bitswap/encode_message.ts";
import { cidPrefix } from "#node/network/bitswap/keys.ts";
import { MAX_MESSAGE_SIZE, protocols } from "#node/network/bitswap/message.ts";
import { heapUsed } from "#test/support/heap.ts";
import { blockOf, connect, host, isFor, type Peer, peer, puppet, someBlocks, until, wantOf } from "./support.ts";

type SomeBlock = ReturnType<typeof blockOf>;

/** Checks that a good peer and the node still get the blocks that they want from each other. */
async function stillServes(t: TestContext, node: Peer): Promise<void> {
  const good = await peer(t);
  const [ours, theirs] = someBlocks(2, 300_000) as [SomeBlock, SomeBlock];
  await Promise.all([node.blocks.put([ours]), good.blocks.put([theirs])]);
  await connect(good, node);
  const got = await Promise.all([good.blocks.get(ours.cid), node.blocks.get(theirs.cid)]);
  assert.ok(Buffer.compare(got[0], ours.bytes) === 0);
  assert.ok(Buffer.compare(got[1], theirs.bytes) === 0);
}

const isConnected = (node: Peer, other: { readonly id: Peer["id"] }) => node.libp2p.getConnections(other.id).length > 0;

test("malformed frames reset the stream, and a peer that repeats them is disconnected", async (t) => {
  const [node, bad] = await Promise.all([peer(t), puppet(t)]);
  await bad.join(node);
  await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
  for (let round = 0; round < 20 && isConnected(node, bad); round += 1) {
    const stream = await bad.stream().catch(() => undefined);
    if (stream === undefined) break;
    stream.send(Buffer.concat([Buffer.from([100]), Buffer.alloc(100, 0xff)]));
    await until(() => stream.status !== "open", "the stream is reset");
  }
  await until(() => !isConnected(node, bad), "the peer is disconnected");
  assert.ok(node.bitswap.stat().malformedMessages >= 4);
  assert.deepEqual(node.bitswap.stat().peers, []);
  await stillServes(t, node);
});

test("a message over the size limit is refused before it is received", async (t) => {
  const [node, bad] = await Promise.all([peer(t), puppet(t)]);
  await bad.join(node);
  const stream = await bad.stream();
  const length = MAX_MESSAGE_SIZE + 1;
  stream.send(
    Uint8Array.of((length & 127) | 128, ((length >> 7) & 127) | 128, ((length >> 14) & 127) | 128, length >> 21),
  );
  await until(() => stream.status !== "open", "the stream is reset");
  assert.equal(node.bitswap.stat().malformedMessages, 1);
  await stillServes(t, node);
});

test("incomplete messages are buffered up to a limit", async (t) => {
  const [node, bad] = await Promise.all([peer(t), puppet(t)]);
  await bad.join(node);
  const streams = await Promise.all(Array.from({ length: 8 }, () => bad.stream()));
  const length = MAX_MESSAGE_SIZE - 1;
  const head = Uint8Array.of(
    (length & 127) | 128,
    ((length >> 7) & 127) | 128,
    ((length >> 14) & 127) | 128,
    length >> 21,
  );
  for (const stream of streams) stream.send(Buffer.concat([head, randomBytes(100)]));
  await until(() => streams.some(({ status }) => status !== "open"), "some streams are reset");
  await stillServes(t, node);
});

test("wrong blocks are dropped and counted, and a peer that repeats them is disconnected", async (t) => {
  const [node, bad] = await Promise.all([peer(t), puppet(t)]);
  await bad.join(node);
  await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
  const [block] = someBlocks(1, 1000) as [SomeBlock];
  const got = node.blocks.get(block.cid);
  await bad.entry(isFor(block));
  const wrong = (): { prefix: Uint8Array; data: Uint8Array } => ({
    prefix: cidPrefix(block.cid),
    data: randomBytes(1000),
  });
  await bad.say({ blocks: [wrong()] });
  await until(() => node.bitswap.stat().unwantedBlocksReceived === 1, "the block is counted");
  assert.equal(node.bitswap.wantlist().length, 1);
  assert.equal((await node.blocks.store.stat()).blocks, 0);
  await bad.say({ blocks: Array.from({ length: 40 }, wrong) });
  await until(() => !isConnected(node, bad), "the peer is disconnected");
  const { blocksReceived, dataReceived, unwantedBlocksReceived, dupBlksReceived } = node.bitswap.stat();
  assert.deepEqual([blocksReceived, dataReceived, unwantedBlocksReceived, dupBlksReceived], [41, 41_000, 41, 0]);

  const good = await peer(t);
  await good.blocks.put([block]);
  await connect(good, node);
  assert.ok(Buffer.compare(await got, block.bytes) === 0);
});

test("unwanted blocks are not stored, and those stored already count as duplicates", async (t) => {
  const [node, other] = await Promise.all([peer(t), puppet(t)]);
  await other.join(node);
  const [here, unasked] = someBlocks(2, 2000) as [SomeBlock, SomeBlock];
  await node.blocks.put([here]);
  await other.give(here, unasked);
  await until(() => node.bitswap.stat().blocksReceived === 2, "both blocks have arrived");
  await until(() => node.bitswap.stat().unwantedBlocksReceived === 1, "one block is unwanted");
  assert.equal(node.bitswap.stat().dupBlksReceived, 1);
  assert.equal(node.bitswap.stat().dupDataReceived, 2000);
  assert.ok(!(await node.blocks.has(unasked.cid)));
  assert.equal(node.bitswap.ledger(other.id).received, 4000);
});

test("a block that arrives after its cancel is no fault", async (t) => {
  const [node, slow] = await Promise.all([peer(t), puppet(t)]);
  await slow.join(node);
  await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
  const blocks = someBlocks(60, 2000);
  const controller = new AbortController();
  const calls = blocks.map(({ cid }) => node.blocks.get(cid, { signal: controller.signal }).catch(() => undefined));
  await slow.entry(isFor(blocks.at(-1) as SomeBlock));
  controller.abort();
  await Promise.all(calls);
  await slow.give(...blocks);
  await until(() => node.bitswap.stat().blocksReceived === 60, "everything has arrived");
  assert.ok(isConnected(node, slow));
  assert.equal((await node.blocks.store.stat()).blocks, 0);
});

test("a stream that is reset within a block loses only that block", async (t) => {
  const [node, bad] = await Promise.all([peer(t), puppet(t)]);
  await bad.join(node);
  await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
  const [block] = someBlocks(1, 500_000) as [SomeBlock];
  const got = node.blocks.get(block.cid);
  await bad.entry(isFor(block));
  await bad.say({ presences: [{ cid: block.cid.bytes, have: true }] });
  await bad.entry(isFor(block, { have: false }));
  const frame = Buffer.concat(
    encodeMessage({
      full: false,
      entries: [],
      blocks: [{ prefix: cidPrefix(block.cid), data: block.bytes }],
      presences: [],
      pendingBytes: 0,
    }),
  );
  const stream = await bad.stream();
  stream.send(frame.subarray(0, 200_000));
  stream.abort(new Error("reset"));
  const good = await peer(t);
  await good.blocks.put([block]);
  await connect(good, node);
  assert.ok(Buffer.compare(await got, block.bytes) === 0);
  assert.equal(node.bitswap.stat().blocksReceived, 1);
});

test("300,000 wants are refused and counted above the limit, in limited memory", async (t) => {
  const [node, bad] = await Promise.all([peer(t, { maxWantsPerPeer: 500 }), puppet(t)]);
  await bad.join(node);
  const stream = await bad.stream();
  const { cid } = blockOf(randomBytes(1));
  const prefix = Buffer.from(cid.bytes.subarray(0, 4));
  const random = randomBytes(32);
  const before = await heapUsed();
  const total = 300_000;
  const each = 10_000;
  for (let sent = 0; sent < total; sent += each) {
    const entries = Array.from({ length: each }, (_, at) => {
      const bytes = Buffer.concat([prefix, random]);
      bytes.writeUInt32BE(sent + at, 8);
      return { ...wantOf({ cid, bytes }), cid: bytes, sendDontHave: sent === 0 };
    });
    const frame = Buffer.concat(encodeMessage({ full: false, entries, blocks: [], presences: [], pendingBytes: 0 }));
    if (!stream.send(frame)) await until(() => !stream.writableNeedsDrain, "the stream accepts more data");
  }
  await until(() => node.bitswap.stat().wantsRefused >= total - 500, "everything has arrived");
  assert.equal(node.bitswap.wantlist(bad.id).length, 500);
  assert.equal(node.bitswap.stat().wantsRefused, total - 500);
  const grown = (await heapUsed()) - before;
  assert.ok(grown < 10e6, `${grown} bytes`);
  await until(() => bad.received.length > 0, "the peer gets a message");
  assert.ok(bad.received.every(({ presences }) => presences.every(({ have }) => !have)));
  await stillServes(t, node);
});

test("repeated wants are looked up a few at a time, and get responses", async (t) => {
  const [node, bad] = await Promise.all([peer(t), puppet(t)]);
  const wanted = someBlocks(2048, 10);
  const [here] = wanted as [SomeBlock];
  await node.blocks.put([here]);
  const { store } = node.blocks;
  const size = store.size.bind(store);
  const gate = Promise.withResolvers<void>();
  let open = 0;
  let most = 0;
  t.mock.method(store, "size", async (cid: SomeBlock["cid"]) => {
    open += 1;
    most = Math.max(most, open);
    await gate.promise;
    open -= 1;
    return size(cid);
  });
  await bad.join(node);
  const entries = Array.from({ length: 16_384 }, (_, at) => wantOf(wanted[at % wanted.length] as SomeBlock));
  for (let round = 0; round < 10; round += 1) await bad.say({ entries });
  await until(() => node.bitswap.stat().messagesReceived === 10, "everything has arrived");
  assert.equal(node.bitswap.wantlist(bad.id).length, wanted.length);
  assert.ok(most > 0 && most <= 512, `${most} at a time`);
  gate.resolve();
  await bad.parcel(here.bytes);
  const missing = () => new Set(bad.received.flatMap(({ presences }) => presences.map(({ cid }) => `${cid}`))).size;
  await until(() => missing() === wanted.length - 1, "all other wants have a response");
  assert.ok(most <= 512, `${most} at a time`);
});

test("a want-have becomes a want-block even when the wantlist is full", async (t) => {
  const [node, other] = await Promise.all([peer(t, { maxWantsPerPeer: 1 }), puppet(t)]);
  await other.join(node);
  const [wanted, further] = someBlocks(2, 2000) as [SomeBlock, SomeBlock];
  await other.say({ entries: [wantOf(wanted, { have: true })] });
  assert.equal(await other.presence(wanted.cid), false);
  await other.say({ entries: [wantOf(further), wantOf(wanted)] });
  await until(() => node.bitswap.stat().wantsRefused === 1, "the want above the limit is refused");
  await node.blocks.put([wanted]);
  await other.parcel(wanted.bytes);
});

test("a block that is stored during its lookup is sent", async (t) => {
  const [node, other] = await Promise.all([peer(t), puppet(t)]);
  const [block] = someBlocks(1, 2000) as [SomeBlock];
  const { store } = node.blocks;
  const size = store.size.bind(store);
  const requests = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  t.mock.method(store, "size", async (cid: SomeBlock["cid"]) => {
    const found = await size(cid);
    requests.resolve();
    await gate.promise;
    return found;
  });
  await other.join(node);
  await other.say({ entries: [wantOf(block)] });
  await requests.promise;
  await node.blocks.put([block]);
  gate.resolve();
  await other.parcel(block.bytes);
});

/** Opens that many peers, which want all blocks and handle received data with `read`. */
async function greedy(
  t: TestContext,
  node: Peer,
  blocks: readonly SomeBlock[],
  count: number,
  read: (stream: Stream) => void,
): Promise<readonly Libp2p[]> {
  await node.blocks.put(blocks);
  const all = await Promise.all(Array.from({ length: count }, () => host(t)));
  const rest = { full: false, blocks: [], presences: [], pendingBytes: 0 };
  for (const bad of all) {
    await bad.handle(protocols[0], read);
    await bad.dial(node.libp2p.getMultiaddrs());
    const stream = await bad.dialProtocol(node.id, protocols[0]);
    for (const piece of encodeMessage({ ...rest, entries: blocks.map((block) => wantOf(block)) })) stream.send(piece);
  }
  await until(() => node.bitswap.stat().messagesReceived === count, "all peers have sent their wants");
  return all;
}

test("peers that want much and never read occupy only their share, and are dropped", async (t) => {
  const node = await peer(t, { maxBytesInFlight: 4 * 1024 * 1024, timeoutMs: 2000 });
  const all = await greedy(t, node, someBlocks(40, 500_000), 6, (stream) => stream.pause());
  await stillServes(t, node);
  await until(() => all.every(({ peerId }) => node.bitswap.wantlist(peerId).length === 0), "all peers are dropped");
  await stillServes(t, node);
});

test("under load each peer has one message in flight, so that a new peer is served", async (t) => {
  const node = await peer(t, { maxBytesInFlight: 4 * 1024 * 1024, timeoutMs: 60_000 });
  const all = await greedy(t, node, someBlocks(40, 500_000), 5, (stream) => stream.pause());
  await stillServes(t, node);
  assert.ok(all.every(({ peerId }) => node.bitswap.wantlist(peerId).length > 0));
});

/** Buffers received data, and reads a few bytes of it now and then. */
function trickle(stream: Stream): void {
  stream.addEventListener("message", () => {});
  stream.pause();
  const windowed = stream as Stream & {
    readonly streamId: number;
    recvWindowCapacity: number;
    sendFrame(header: { type: number; flag: number; streamID: number; length: number }): void;
  };
  const timer = setInterval(() => {
    windowed.recvWindowCapacity += 64;
    windowed.sendFrame({ type: 1, flag: 0, streamID: windowed.streamId, length: 64 });
  }, 100);
  stream.addEventListener("close", () => clearInterval(timer));
}

test("under pressure peers that read too slowly are dropped", async (t) => {
  const node = await peer(t, { maxBytesInFlight: 4 * 1024 * 1024, timeoutMs: 1000 });
  const all = await greedy(t, node, someBlocks(40, 500_000), 12, trickle);
  await stillServes(t, node);
  await until(
    () => all.filter(({ peerId }) => node.bitswap.wantlist(peerId).length === 0).length >= 4,
    "those who waited for one another are given up",
  );
});

test("without pressure a slow peer is not dropped", async (t) => {
  // This is fifteen times as long as the slow peer pauses.
  const node = await peer(t, { timeoutMs: 1500 });
  const [slow] = await greedy(t, node, someBlocks(1, 500_000), 1, trickle);
  assert.ok(slow);
  const later = new Promise((resolve) => setTimeout(resolve, 4000));
  await Promise.all([stillServes(t, node), later]);
  assert.equal(node.bitswap.wantlist(slow.peerId).length, 1);
});

test("peers that connect and disconnect at once leave nothing behind", async (t) => {
  const node = await peer(t);
  const block = blockOf(randomBytes(10));
  const controller = new AbortController();
  const waiting = node.blocks.get(block.cid, { signal: controller.signal }).catch(() => undefined);
  for (let round = 0; round < 5; round += 1) {
    const bad = await Promise.all(Array.from({ length: 8 }, () => puppet(t)));
    await Promise.all(bad.map((each) => each.join(node)));
    await Promise.all(bad.map(async (each) => each.say({ entries: [wantOf(block)] }).catch(() => {})));
    await Promise.all(bad.map((each) => each.libp2p.stop()));
  }
  await until(() => node.bitswap.stat().peers.length === 0, "no peer is left");
  await stillServes(t, node);
  controller.abort();
  await waiting;
  assert.deepEqual(node.bitswap.stat().wantlist, []);
});
