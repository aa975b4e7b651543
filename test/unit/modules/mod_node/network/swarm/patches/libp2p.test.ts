import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stream } from "@libp2p/interface";
import { connectTo, startPeer } from "../support.ts";

const protocol = "/test/1.0.0";

test("with middleware each inbound stream is handled once, and outbound ones are not", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const seen = { here: 0, handled: [] as Stream[] };
  for (const { swarm } of [a, b]) {
    swarm.libp2p.use(protocol, (stream, connection, next) => {
      seen.here += 1;
      next(stream, connection);
    });
    await swarm.libp2p.handle(protocol, (stream) => void seen.handled.push(stream));
  }
  await connectTo(a, b);
  for (let count = 0; count < 10; count += 1) {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      const stream = await from.swarm.libp2p.dialProtocol(to.swarm.id, protocol, { negotiateFully: true });
      stream.send(Buffer.from("x"));
      await stream.close();
    }
  }
  assert.equal(new Set(seen.handled).size, seen.handled.length);
  assert.ok(seen.handled.every(({ direction }) => direction === "inbound"));
  assert.equal(seen.handled.length, 20);
  assert.equal(seen.here, 40);
});
