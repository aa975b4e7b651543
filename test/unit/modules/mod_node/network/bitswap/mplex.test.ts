import assert from "node:assert/strict";
import { test } from "node:test";
import { protocols } from "#node/network/bitswap/message.ts";
import { mplexFactory } from "#node/network/swarm/patches/mplex/mplex_factory.ts";
import { PatchNotices } from "#node/network/swarm/patches/notices.ts";
import { host, Puppet, peer, someBlocks, until, wantOf } from "./support.ts";

test("over mplex, a stream carries no more than slow readers buffer", async (t) => {
  const over = () => host(t, undefined, [mplexFactory(new PatchNotices())]);
  const node = await peer(t, {}, over());
  const libp2p = await over();
  const puppet = new Puppet(libp2p, protocols[0]);
  await puppet.start();
  const blocks = someBlocks(40, 250_000);
  await node.blocks.put(blocks);
  await puppet.join(node);
  await puppet.say({ entries: blocks.map((block) => wantOf(block)) });
  const bytes = () =>
    puppet.received.flatMap(({ blocks }) => [...blocks]).reduce((sum, { data }) => sum + data.length, 0);
  await until(() => bytes() >= 10_000_000, "all blocks have arrived");
  assert.equal(bytes(), 10_000_000, "each of them once");
  assert.ok(puppet.streams.length >= 4, `${puppet.streams.length} streams`);
  assert.ok(puppet.streams.every(({ bytes }) => bytes < 3_000_000));
  // Streams that have delivered their blocks are closed.
  await until(
    () => node.libp2p.getConnections().flatMap(({ streams }) => streams).length <= 4,
    "the streams are closed",
  );
});
