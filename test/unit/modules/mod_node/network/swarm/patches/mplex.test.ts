import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { Connection } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { tcp } from "@libp2p/tcp";
import { createLibp2p } from "libp2p";
import { mplexFactory } from "#node/network/swarm/patches/mplex/mplex_factory.ts";
import { PatchNotices } from "#node/network/swarm/patches/notices.ts";

const protocol = "/test/1.0.0";

async function startPeer(perSecond?: number) {
  const libp2p = await createLibp2p({
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [mplexFactory(new PatchNotices(assert.fail), perSecond)],
    connectionMonitor: { enabled: false },
  });
  let opened = 0;
  await libp2p.handle(protocol, () => void (opened += 1), { maxInboundStreams: 100 });
  return { libp2p, opened: () => opened, [Symbol.asyncDispose]: async () => libp2p.stop() };
}

type Peer = Awaited<ReturnType<typeof startPeer>>;

/** Both ends of a new connection. */
async function connected(a: Peer, b: Peer) {
  const opened = once(b.libp2p as unknown as EventTarget, "connection:open");
  const ours = await a.libp2p.dial(b.libp2p.getMultiaddrs());
  await opened;
  return { ours, theirs: b.libp2p.getConnections()[0] as Connection };
}

test("a peer may open many streams at once over mplex", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const { ours } = await connected(a, b);
  assert.equal(ours.multiplexer, "/mplex/6.7.0");
  const streams = await Promise.all(Array.from({ length: 50 }, () => ours.newStream(protocol)));
  assert.deepEqual([...new Set(streams.map(({ status }) => status))], ["open"]);
  assert.equal(b.opened(), 50);
});

test("a multiplexer that gives up ends the connection, on both sides", async () => {
  await using a = await startPeer();
  await using b = await startPeer(20);
  const { ours, theirs } = await connected(a, b);
  const ended = once(theirs as unknown as EventTarget, "close");
  await Promise.allSettled(Array.from({ length: 50 }, () => ours.newStream(protocol)));
  await ended;
  assert.deepEqual(b.libp2p.getConnections(), []);
  await assert.rejects(ours.newStream(protocol));
});
