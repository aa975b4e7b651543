import assert from "node:assert/strict";
import { test } from "node:test";
import { Allowlist } from "#node/network/swarm/allowlist.ts";
import { parseMultiaddr } from "#node/network/swarm/multiaddr.ts";
import { eventually } from "#test/support/eventually.ts";
import { connectTo, startPeer } from "./support.ts";

test("an entry is an address or a range, for all peers there or for one", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const list = new Allowlist([
    "/ip4/192.0.2.7",
    "/ip4/10.1.2.3/ipcidr/8",
    "/ip6/2001:db8::/ipcidr/32",
    `/ip4/198.51.100.1/p2p/${a.swarm.id}`,
  ]);
  const has = (address: string, { swarm } = b) => list.has(parseMultiaddr(`${address}/tcp/4001`), swarm.id);
  assert.deepEqual(
    ["/ip4/192.0.2.7", "/ip4/10.200.0.1", "/ip6/2001:db8:1::1"].map((each) => has(each)),
    [true, true, true],
  );
  assert.deepEqual(
    ["/ip4/192.0.2.8", "/ip4/11.0.0.1", "/ip6/2001:db9::1", "/dns4/a.example"].map((each) => has(each)),
    [false, false, false, false],
  );
  assert.deepEqual([has("/ip4/198.51.100.1", a), has("/ip4/198.51.100.1", b)], [true, false]);
  for (const wrong of [
    "",
    "/ip4/1.2.3.4/ipcidr/33",
    "/ip4/::1",
    "/dns4/a.example",
    "/ip4/1.2.3.4/tcp/1",
    "/ip4/1.2.3.4/p2p/x",
  ]) {
    assert.throws(() => new Allowlist([wrong]), { message: /^Swarm\.ResourceMgr\.Allowlist: .* is neither/ });
  }
});

test("a peer of Swarm.ResourceMgr.Allowlist may connect above the limit, and no other peer at its address", async () => {
  await using named = await startPeer();
  await using other = await startPeer();
  await using first = await startPeer();
  const full = { "Swarm.ResourceMgr.MaxFileDescriptors": 1 };
  const allowed = { "Swarm.ResourceMgr.Allowlist": [`/ip4/127.0.0.0/ipcidr/8/p2p/${named.swarm.id}`] };
  await using closed = await startPeer({ config: full });
  await connectTo(first, closed);
  await assert.rejects(connectTo(named, closed));
  await using open = await startPeer({ config: { ...full, ...allowed } });
  await connectTo(first, open);
  // The dialling side has the connection before the other side knows who it is.
  await connectTo(other, open).catch(() => undefined);
  await eventually("the peer is disconnected", () => other.swarm.connections(open.swarm.id).length === 0);
  await connectTo(named, open);
  assert.deepEqual(
    open.swarm
      .connections()
      .map(({ remotePeer }) => String(remotePeer))
      .sort(),
    [first, named].map(({ swarm }) => String(swarm.id)).sort(),
  );
});
