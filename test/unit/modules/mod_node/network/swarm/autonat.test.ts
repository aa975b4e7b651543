import assert from "node:assert/strict";
import { test } from "node:test";
import { throttle } from "#node/network/swarm/autonat.ts";
import { field } from "#test/support/protobuf.ts";
import { connectTo, startPeer } from "./support.ts";

type Middleware = ReturnType<typeof throttle>;

/** Returns whether a stream of a peer is let through. */
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

test("requests are limited per peer and in total for each interval", () => {
  let now = 0;
  const middleware = throttle({ all: 3, peer: 2, interval: 1000 }, () => now);
  assert.deepEqual(
    ["a", "a", "a", "b", "c"].map((peer) => asks(middleware, peer)),
    [true, true, false, true, false],
  );
  assert.equal(asks(middleware, "c", "outbound"), true);
  now = 1000;
  assert.equal(asks(middleware, "a"), true);
});

test("zero means no limit", () => {
  const middleware = throttle({ all: 0, peer: 0, interval: 1000 });
  assert.ok(Array.from({ length: 100 }, () => asks(middleware, "a")).every(Boolean));
});

test("with AutoNAT disabled a node does not offer the protocol", async () => {
  await using a = await startPeer({ config: { "AutoNAT.ServiceMode": "disabled" } });
  await using b = await startPeer();
  await connectTo(b, a);
  assert.equal((await b.swarm.peerInfo(a.swarm.id)).protocols.includes("/libp2p/autonat/1.0.0"), false);
  assert.equal(b.swarm.libp2p.getProtocols().includes("/libp2p/autonat/1.0.0"), true);
});

const refused = 101;

test("a peer that asks about a private address is refused, and stays connected", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const connection = await connectTo(b, a);
  const stream = await connection.newStream("/libp2p/autonat/1.0.0");
  const addresses = b.swarm.listenAddresses().map(({ bytes }) => field(2, bytes));
  const dial = field(2, field(1, field(1, b.swarm.id.toMultihash().bytes), ...addresses));
  stream.send(Buffer.concat([Uint8Array.of(dial.length + 2, 8, 0), dial]));
  const response = Buffer.concat(await Array.fromAsync(stream, (chunk) => chunk.subarray()));
  // A DIAL_RESPONSE, which begins with its status.
  assert.deepEqual([...response.subarray(1, 7)], [8, 1, 0x1a, response.length - 5, 8, refused]);
  assert.equal(connection.status, "open");
});
