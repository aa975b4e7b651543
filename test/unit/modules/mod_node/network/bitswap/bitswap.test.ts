import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { create as createDigest } from "multiformats/hashes/digest";
import { failure, type NodeError } from "#node/util/errors.ts";
import { blockOf, connect, peer, someBlocks, until } from "./support.ts";

test("blocks are fetched from a connected peer and stored, and the ledgers of both sides agree", async (t) => {
  const [a, b] = await Promise.all([peer(t), peer(t)]);
  const blocks = [...someBlocks(30, 200_000), ...someBlocks(300, 700), blockOf(new Uint8Array())];
  await a.blocks.put(blocks);
  await connect(b, a);
  const { signal } = new AbortController();
  const got = await Promise.all(blocks.map(({ cid }) => b.blocks.get(cid, { signal })));
  for (const [at, { bytes }] of blocks.entries()) assert.ok(Buffer.compare(bytes, got[at] as Uint8Array) === 0);
  for (const { cid } of blocks) assert.ok(await b.blocks.has(cid));

  const bytes = blocks.reduce((sum, block) => sum + block.bytes.length, 0);
  const { messagesReceived, ...taken } = b.bitswap.stat();
  assert.deepEqual(taken, {
    provideBufLen: 0,
    wantlist: [],
    peers: [a.id.toString()],
    blocksReceived: blocks.length,
    dataReceived: bytes,
    blocksSent: 0,
    dataSent: 0,
    dupBlksReceived: 0,
    dupDataReceived: 0,
    unwantedBlocksReceived: 0,
    wantsRefused: 0,
    malformedMessages: 0,
  });
  assert.ok(messagesReceived > 0);
  await until(() => a.bitswap.stat().blocksSent === blocks.length, "the other side has counted the blocks");
  const given = a.bitswap.stat();
  assert.equal(given.dataSent, bytes);
  assert.deepEqual(b.bitswap.ledger(a.id), {
    peer: a.id.toString(),
    value: 0,
    sent: 0,
    received: bytes,
    exchanged: blocks.length,
  });
  assert.deepEqual(a.bitswap.ledger(b.id), {
    peer: b.id.toString(),
    value: bytes,
    sent: bytes,
    received: 0,
    exchanged: blocks.length,
  });
  assert.deepEqual(a.bitswap.wantlist(b.id), []);
});

test("wants of one turn share a message, and so do small blocks", async (t) => {
  const [a, b] = await Promise.all([peer(t), peer(t)]);
  const blocks = someBlocks(200, 2000);
  await a.blocks.put(blocks);
  await connect(b, a);
  const { signal } = new AbortController();
  await Promise.all(blocks.map(({ cid }) => b.blocks.get(cid, { signal })));
  assert.ok(b.bitswap.stat().messagesReceived <= 10, `${b.bitswap.stat().messagesReceived} messages`);
  // The first message asks who has the blocks, the second requests them.
  assert.ok(a.bitswap.stat().messagesReceived <= 10, `${a.bitswap.stat().messagesReceived} messages`);
});

test("a block is requested under another form of its CID, and stored under the wanted one", async (t) => {
  const [a, b] = await Promise.all([peer(t), peer(t)]);
  const { cid, bytes } = blockOf(Buffer.from("0a020801", "hex"));
  const v0 = CID.createV0(createDigest(0x12, cid.multihash.digest));
  await a.blocks.put([{ cid: v0.toV1(), bytes }]);
  await connect(b, a);
  assert.deepEqual(Buffer.from(await b.blocks.get(v0)), Buffer.from(bytes));
  assert.ok(await b.blocks.store.has(v0));
});

test("a waiting peer gets a block as soon as it is stored", async (t) => {
  const [a, b] = await Promise.all([peer(t), peer(t)]);
  const [block] = someBlocks(1, 50_000) as [ReturnType<typeof blockOf>];
  await connect(b, a);
  const waiting = b.blocks.get(block.cid);
  await until(() => a.bitswap.wantlist(b.id).length === 1, "the want is known");
  assert.deepEqual(a.bitswap.wantlist(b.id).map(String), [block.cid.toString()]);
  assert.deepEqual(b.bitswap.wantlist().map(String), [block.cid.toString()]);
  await a.blocks.put([block]);
  assert.ok(Buffer.compare(await waiting, block.bytes) === 0);
});

test("storing a block here resolves its fetch and cancels the want", async (t) => {
  const [a, b] = await Promise.all([peer(t), peer(t)]);
  const block = blockOf(randomBytes(1000));
  await connect(b, a);
  const waiting = b.blocks.get(block.cid);
  await until(() => a.bitswap.wantlist(b.id).length === 1, "the want is known");
  await b.blocks.put([block]);
  assert.ok(Buffer.compare(await waiting, block.bytes) === 0);
  await until(() => a.bitswap.wantlist(b.id).length === 0, "the want is cancelled");
  assert.equal(b.bitswap.stat().blocksReceived, 0);
});

test("a want is cancelled when its last caller aborts, and the error says what was tried", async (t) => {
  const [a, b] = await Promise.all([peer(t), peer(t)]);
  const block = blockOf(randomBytes(1000));
  await connect(b, a);
  const one = new AbortController();
  const two = new AbortController();
  const first = b.blocks.get(block.cid, { signal: one.signal });
  const second = b.blocks.get(block.cid, { signal: two.signal });
  await until(() => a.bitswap.wantlist(b.id).length === 1, "the want is known");
  one.abort(failure("DEADLINE_EXCEEDED"));
  await assert.rejects(first, (error: Error) => {
    assert.equal(error.message, "context deadline exceeded");
    assert.equal((error as NodeError).code, "DEADLINE_EXCEEDED");
    assert.match(String(error.cause), /did not arrive: 1 peers were asked/);
    return true;
  });
  assert.equal(b.bitswap.wantlist().length, 1);
  two.abort();
  await assert.rejects(second, { name: "AbortError" });
  assert.equal(b.bitswap.wantlist().length, 0);
  await until(() => a.bitswap.wantlist(b.id).length === 0, "the want is cancelled");
});

test("a peer that connects later gets the wantlist", async (t) => {
  const [a, b] = await Promise.all([peer(t), peer(t)]);
  const block = blockOf(randomBytes(100_000));
  await a.blocks.put([block]);
  const waiting = b.blocks.get(block.cid);
  await connect(a, b);
  assert.ok(Buffer.compare(await waiting, block.bytes) === 0);
});

test("blocks that two peers have are sent by both, each block once", async (t) => {
  const [a, b, c] = await Promise.all([peer(t), peer(t), peer(t)]);
  const blocks = someBlocks(100, 100_000);
  await Promise.all([a.blocks.put(blocks), b.blocks.put(blocks)]);
  await Promise.all([connect(c, a), connect(c, b)]);
  await until(() => c.bitswap.stat().peers.length === 2, "both peers are known");
  const { signal } = new AbortController();
  await Promise.all(blocks.map(({ cid }) => c.blocks.get(cid, { signal })));
  const { blocksReceived, dupBlksReceived } = c.bitswap.stat();
  assert.equal(blocksReceived - dupBlksReceived, 100);
  assert.ok(dupBlksReceived <= 10, `${dupBlksReceived} duplicates`);
  assert.ok(c.bitswap.ledger(a.id).exchanged > 0);
  assert.ok(c.bitswap.ledger(b.id).exchanged > 0);
});

test("providers are searched when no peer has a block, and asked once they are connected", async (t) => {
  const [a, b, c] = await Promise.all([peer(t), peer(t), peer(t)]);
  const blocks = someBlocks(3, 10_000);
  await a.blocks.put(blocks);
  await connect(c, b);
  const searched: string[] = [];
  c.bitswap.providers = {
    async *findProviderPeers(cid) {
      searched.push(cid.toString());
      yield { id: a.id, addresses: a.libp2p.getMultiaddrs(), protocols: [] };
    },
  };
  const session = c.bitswap.session((blocks[0] as (typeof blocks)[0]).cid);
  const got = await Promise.all(blocks.map(({ cid }) => session.fetch(cid, undefined)));
  assert.deepEqual(
    got.map((bytes) => blockOf(bytes).cid.toString()),
    blocks.map(({ cid }) => cid.toString()),
  );
  // A slow machine searches again before the block has arrived, but for no other block.
  assert.deepEqual([...new Set(searched)], [blocks[0]?.cid.toString()]);
});

test("a peer that disconnects loses its ledger, and its pending blocks come from others", async (t) => {
  const [a, b, c] = await Promise.all([peer(t), peer(t), peer(t)]);
  const blocks = someBlocks(40, 100_000);
  await Promise.all([a.blocks.put(blocks), b.blocks.put(blocks)]);
  await connect(c, a);
  const { signal } = new AbortController();
  const first = Promise.all(blocks.slice(0, 20).map(({ cid }) => c.blocks.get(cid, { signal })));
  await first;
  assert.ok(c.bitswap.ledger(a.id).received > 0);
  const rest = Promise.all(blocks.slice(20).map(({ cid }) => c.blocks.get(cid, { signal })));
  await Promise.all([c.libp2p.hangUp(a.id), connect(c, b)]);
  await rest;
  assert.deepEqual(c.bitswap.stat().peers, [b.id.toString()]);
  assert.equal(c.bitswap.ledger(a.id).received, 0);
  assert.ok(c.bitswap.ledger(b.id).received > 0);
});

test("closing rejects all fetches", async (t) => {
  const [a, b] = await Promise.all([peer(t), peer(t)]);
  await connect(b, a);
  const waiting = b.blocks.get(blockOf(randomBytes(10)).cid);
  const closed = assert.rejects(waiting, { code: "STORE_CLOSED" });
  await b.bitswap.stop();
  await closed;
  await assert.rejects(b.bitswap.fetch(blockOf(randomBytes(10)).cid, undefined), { code: "STORE_CLOSED" });
  await b.bitswap.stop();
});
