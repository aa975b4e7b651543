import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { protocols } from "#node/network/bitswap/message.ts";
import { blockOf, isFor, peer, puppet, someBlocks, until, wantOf } from "./support.ts";

type SomeBlock = ReturnType<typeof blockOf>;

test("a peer that sends HAVE is asked for the block, and for the next block at once", async (t) => {
  const [node, one, two] = await Promise.all([peer(t), puppet(t), puppet(t)]);
  await Promise.all([one.join(node), two.join(node)]);
  await until(() => node.bitswap.stat().peers.length === 2, "both peers are known");
  const [first, second] = someBlocks(2, 10_000) as [SomeBlock, SomeBlock];
  const { signal } = new AbortController();
  const got = node.blocks.get(first.cid, { signal });
  await Promise.all([one, two].map((each) => each.entry(isFor(first, { have: true, sendDontHave: true }))));
  await two.say({ presences: [{ cid: first.cid.bytes, have: false }] });
  await one.say({ presences: [{ cid: first.cid.bytes, have: true }] });
  await one.entry(isFor(first, { have: false, cancel: false }));
  await one.give(first);
  assert.ok(Buffer.compare(await got, first.bytes) === 0);
  await two.entry(isFor(first, { cancel: true }));

  const next = node.blocks.get(second.cid, { signal });
  await one.entry(isFor(second, { have: false }));
  await one.give(second);
  await next;
  assert.ok(!two.entries.some(isFor(second)));
});

test("after a DONT_HAVE another peer is asked", async (t) => {
  const [node, one, two] = await Promise.all([peer(t), puppet(t), puppet(t)]);
  await Promise.all([one.join(node), two.join(node)]);
  await until(() => node.bitswap.stat().peers.length === 2, "both peers are known");
  const [block] = someBlocks(1, 10_000) as [SomeBlock];
  const got = node.blocks.get(block.cid);
  await Promise.all([one.entry(isFor(block)), two.entry(isFor(block))]);
  await one.say({ presences: [{ cid: block.cid.bytes, have: true }] });
  await one.entry(isFor(block, { have: false }));
  await one.say({ presences: [{ cid: block.cid.bytes, have: false }] });
  await two.say({ presences: [{ cid: block.cid.bytes, have: true }] });
  await two.entry(isFor(block, { have: false }));
  await two.give(block);
  assert.ok(Buffer.compare(await got, block.bytes) === 0);
});

test("a peer that sends HAVE but no block is replaced by another", async (t) => {
  const [node, mute, good] = await Promise.all([peer(t), puppet(t), puppet(t)]);
  await Promise.all([mute.join(node), good.join(node)]);
  await until(() => node.bitswap.stat().peers.length === 2, "both peers are known");
  const [block] = someBlocks(1, 10_000) as [SomeBlock];
  const got = node.blocks.get(block.cid);
  await Promise.all([mute.entry(isFor(block)), good.entry(isFor(block))]);
  await mute.say({ presences: [{ cid: block.cid.bytes, have: true }] });
  await mute.entry(isFor(block, { have: false }));
  await good.say({ presences: [{ cid: block.cid.bytes, have: true }] });
  await good.entry(isFor(block, { have: false }));
  await good.give(block);
  assert.ok(Buffer.compare(await got, block.bytes) === 0);
});

test("two fetches of one block request it once", async (t) => {
  const [node, other] = await Promise.all([peer(t), puppet(t)]);
  await other.join(node);
  await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
  const [block] = someBlocks(1, 10_000) as [SomeBlock];
  const calls = [node.blocks.get(block.cid), node.blocks.get(block.cid, { signal: new AbortController().signal })];
  await other.entry(isFor(block));
  await other.say({ presences: [{ cid: block.cid.bytes, have: true }] });
  await other.entry(isFor(block, { have: false }));
  await other.give(block);
  for (const bytes of await Promise.all(calls)) assert.ok(Buffer.compare(bytes, block.bytes) === 0);
  assert.equal(other.entries.filter(isFor(block)).length, 2);
});

test("want-block gets the block, want-have HAVE or DONT_HAVE, or the block when it is small", async (t) => {
  const [node, other] = await Promise.all([peer(t), puppet(t)]);
  await other.join(node);
  const [large, requests, missing, unasked] = someBlocks(4, 5000) as [SomeBlock, SomeBlock, SomeBlock, SomeBlock];
  const small = blockOf(randomBytes(1000));
  await node.blocks.put([large, requests, small]);
  await other.say({
    entries: [
      wantOf(large, { priority: 1 }),
      wantOf(requests, { have: true }),
      wantOf(small, { have: true, priority: 7 }),
      wantOf(missing, { have: true }),
      wantOf(unasked, { sendDontHave: false }),
    ],
  });
  assert.equal(await other.presence(requests.cid), true);
  assert.equal(await other.presence(missing.cid), false);
  const { prefix } = await other.parcel(small.bytes);
  assert.deepEqual([...(prefix ?? [])], [1, 0x55, 0x12, 32]);
  await other.parcel(large.bytes);
  const order = other.received.flatMap(({ blocks }) => blocks.map(({ data }) => data.length));
  assert.deepEqual(order, [1000, 5000]);
  const waiting = new Set([missing.cid.toString(), unasked.cid.toString()]);
  await until(() => node.bitswap.wantlist(other.id).length === 2, "only the missing blocks are wanted");
  assert.deepEqual(new Set(node.bitswap.wantlist(other.id).map(String)), waiting);

  await node.blocks.put([missing, unasked]);
  await other.parcel(unasked.bytes);
  await until(
    () =>
      other.received.some(({ presences }) =>
        presences.some(({ have, cid }) => have && Buffer.compare(cid, missing.cid.bytes) === 0),
      ),
    "it is told that it is here now",
  );
});

test("a cancel removes a want, and a full wantlist replaces all", async (t) => {
  const [node, other] = await Promise.all([peer(t), puppet(t)]);
  await other.join(node);
  const [one, two, three] = someBlocks(3, 5000) as [SomeBlock, SomeBlock, SomeBlock];
  await other.say({ entries: [wantOf(one), wantOf(two)] });
  assert.equal(await other.presence(two.cid), false);
  await other.say({ entries: [wantOf(one, { cancel: true })] });
  await until(() => node.bitswap.wantlist(other.id).length === 1, "one block is wanted");
  await other.say({ full: true, entries: [wantOf(three)] });
  assert.equal(await other.presence(three.cid), false);
  assert.deepEqual(node.bitswap.wantlist(other.id).map(String), [three.cid.toString()]);
  await node.blocks.put([one, two, three]);
  await other.parcel(three.bytes);
  assert.equal(node.bitswap.stat().blocksSent, 1);
});

for (const protocol of protocols.slice(1)) {
  test(`blocks cross both ways with a peer that speaks ${protocol}`, async (t) => {
    const [node, other] = await Promise.all([peer(t), puppet(t, protocol)]);
    await other.join(node);
    await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
    const [wanted, served, missing] = someBlocks(3, 50_000) as [SomeBlock, SomeBlock, SomeBlock];
    const got = node.blocks.get(wanted.cid);
    // This version only knows requests for the block itself.
    const entry = await other.entry(isFor(wanted));
    assert.deepEqual(
      { ...entry, cid: undefined, priority: 0 },
      { cid: undefined, priority: 0, cancel: false, have: false, sendDontHave: false },
    );
    await other.give(wanted);
    assert.ok(Buffer.compare(await got, wanted.bytes) === 0);

    await node.blocks.put([served]);
    await other.say({ entries: [wantOf(missing, { sendDontHave: true }), wantOf(served)] });
    const { prefix } = await other.parcel(served.bytes);
    assert.equal(prefix === undefined, protocol !== protocols[1]);
    assert.ok(other.received.every(({ presences }) => presences.length === 0));
  });
}

test("a peer that opens a stream gets one opened in return, so that the first response need not wait", async (t) => {
  const [node, other] = await Promise.all([peer(t), puppet(t)]);
  await other.join(node);
  await other.stream();
  await until(() => other.streams.length === 1, "a stream is opened before any request");
  assert.deepEqual(other.received, []);
  await other.stream();
  const [block] = someBlocks(1, 5000) as [SomeBlock];
  await node.blocks.put([block]);
  await other.say({ entries: [{ cid: block.cid.bytes, priority: 1, cancel: false, have: false, sendDontHave: true }] });
  await other.parcel(block.bytes);
  assert.equal(other.streams.length, 1, "it is the one that is used");
});

test("a reset stream is replaced, and the whole wantlist is sent again", async (t) => {
  const [node, other] = await Promise.all([peer(t), puppet(t)]);
  await other.join(node);
  await until(() => node.bitswap.stat().peers.length === 1, "the peer is known");
  const [one, two] = someBlocks(2, 5000) as [SomeBlock, SomeBlock];
  const first = node.blocks.get(one.cid);
  await other.entry(isFor(one));
  const [connection] = other.libp2p.getConnections(node.id);
  for (const stream of connection?.streams ?? []) {
    if (stream.protocol === protocols[0] && stream.direction === "inbound") stream.abort(new Error("reset"));
  }
  const ours = () => node.libp2p.getConnections(other.id).flatMap(({ streams }) => streams);
  await until(
    () => !ours().some(({ protocol, direction }) => protocol === protocols[0] && direction === "outbound"),
    "it is gone",
  );
  other.received.length = 0;
  const second = node.blocks.get(two.cid);
  await other.entry(isFor(two));
  assert.ok(other.received.some(({ full }) => full));
  assert.ok(other.entries.some(isFor(one)));
  await other.give(one, two);
  await Promise.all([first, second]);
});
