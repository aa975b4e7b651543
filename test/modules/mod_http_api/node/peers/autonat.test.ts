import assert from "node:assert/strict";
import { test } from "node:test";
import { throttled } from "../../../../../modules/mod_http_api/node/peers/autonat.ts";
import { connectTo, startPeer } from "./support.ts";

type Middleware = ReturnType<typeof throttled>;

/** Whether a stream of a peer is let through. */
function asks(middleware: Middleware, remotePeer: string, direction = "inbound"): boolean {
  let passed = false;
  try {
    void middleware(
      { direction } as Parameters<Middleware>[0],
      { remotePeer } as unknown as Parameters<Middleware>[1],
      () => {
        passed = true;
      },
    );
  } catch {
    return false;
  }
  return passed;
}

test("requests are bounded by peer and in all, in each interval anew", () => {
  let now = 0;
  const middleware = throttled({ all: 3, peer: 2, interval: 1000 }, () => now);
  assert.deepEqual(
    ["a", "a", "a", "b", "c"].map((peer) => asks(middleware, peer)),
    [true, true, false, true, false],
  );
  assert.equal(asks(middleware, "c", "outbound"), true);
  now = 1000;
  assert.equal(asks(middleware, "a"), true);
});

test("zero is no bound", () => {
  const middleware = throttled({ all: 0, peer: 0, interval: 1000 });
  assert.ok(Array.from({ length: 100 }, () => asks(middleware, "a")).every(Boolean));
});

test("a node that is not to tell others does not offer it", async () => {
  await using a = await startPeer({ config: { "AutoNAT.ServiceMode": "disabled" } });
  await using b = await startPeer();
  await connectTo(b, a);
  assert.equal((await b.peers.facts(a.peers.id)).protocols.includes("/libp2p/autonat/1.0.0"), false);
  assert.equal(b.peers.libp2p.getProtocols().includes("/libp2p/autonat/1.0.0"), true);
});
