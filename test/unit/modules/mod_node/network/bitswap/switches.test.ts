/** Tests a node that does not serve peers, and one that does not talk to any. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { blockOf, connect, peer, puppet, until } from "./support.ts";

test("a peer gets DONT_HAVE for every block, and the blocks once peers are served again", async (t) => {
  let isServing = false;
  const node = await peer(t, { serves: () => isServing });
  const stranger = await puppet(t);
  await stranger.join(node);
  const [present, stored, given] = ["kept", "stored later", "given"].map((text) => blockOf(Buffer.from(text))) as [
    ReturnType<typeof blockOf>,
    ReturnType<typeof blockOf>,
    ReturnType<typeof blockOf>,
  ];
  await node.blocks.put([present, given]);
  const want = ({ cid }: typeof present) => ({
    entries: [{ cid: cid.bytes, priority: 1, cancel: false, have: false, sendDontHave: true }],
  });
  await stranger.say(want(present));
  assert.equal(await stranger.presence(present.cid), false);
  await stranger.say(want(stored));
  assert.equal(await stranger.presence(stored.cid), false);
  await node.blocks.put([stored]);
  isServing = true;
  await stranger.say(want(given));
  await stranger.parcel(given.bytes);
  assert.equal(node.bitswap.stat().blocksSent, 1);
});

test("no peer is contacted while bitswap is off, and a block from elsewhere ends the wait for it", async (t) => {
  const off = await peer(t, { overLibp2p: false });
  const on = await peer(t);
  const [here, there] = ["here", "there"].map((text) => blockOf(Buffer.from(text))) as [
    ReturnType<typeof blockOf>,
    ReturnType<typeof blockOf>,
  ];
  await off.blocks.put([here]);
  await on.blocks.put([there]);
  await connect(on, off);
  const identified = async () => (await on.libp2p.peerStore.get(off.id)).protocols.length > 0;
  let isIdentified = false;
  const looking = setInterval(async () => (isIdentified = await identified()), 5);
  await until(() => isIdentified, "the peer has reported its protocols").finally(() => clearInterval(looking));
  assert.deepEqual(
    off.libp2p.getProtocols().filter((protocol) => protocol.includes("bitswap")),
    [],
  );
  const waiting = off.blocks.get(there.cid, { signal: AbortSignal.timeout(60_000) });
  await until(() => off.bitswap.wantlist().length === 1, "the block is wanted");
  assert.deepEqual([off.bitswap.stat().peers, on.bitswap.stat().peers], [[], []]);
  await off.blocks.put([there]);
  assert.deepEqual(Buffer.from(await waiting), Buffer.from(there.bytes));
});
