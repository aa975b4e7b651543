import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stream } from "@libp2p/interface";
import { pingProtocol } from "../../../../../modules/mod_http_api/node/peers/ping.ts";
import { startPeer, startStranger } from "./support.ts";

/** A peer that answers with `echo`, on one stream at a time. */
async function acquainted(echo: (stream: Stream) => Promise<void>) {
  const stranger = await startStranger();
  await stranger.unhandle(pingProtocol);
  await stranger.handle(pingProtocol, echo, { maxInboundStreams: 1 });
  const peer = await startPeer();
  const { ping } = peer.peers;
  await peer.peers.connect(stranger.peerId, stranger.getMultiaddrs());
  const [connection] = stranger.getConnections();
  const open = () => connection?.streams.filter(({ protocol }) => protocol === pingProtocol).length;
  return {
    ping,
    id: stranger.peerId,
    open,
    async [Symbol.asyncDispose]() {
      await peer.stop();
      await stranger.stop();
    },
  };
}

const faithful = async (stream: Stream) => {
  for await (const chunk of stream) stream.send(chunk);
};

test("a peer that takes one stream for echoes is asked by several at once", async () => {
  await using met = await acquainted(faithful);
  const echo = await met.ping.open(met.id);
  const times = await Promise.all([echo.once(), met.ping.ping(met.id), met.ping.ping(met.id), echo.once()]);
  assert.ok(
    times.every((time) => time > 0 && time < 5000),
    String(times),
  );
  assert.equal(met.open(), 1);
  echo.close();
  assert.ok((await met.ping.ping(met.id)) > 0);
});

test("who gives up takes no echo from the others", async () => {
  const { promise: release, resolve } = Promise.withResolvers<void>();
  await using met = await acquainted(async (stream) => {
    for await (const chunk of stream) {
      await release;
      stream.send(chunk);
    }
  });
  const echo = await met.ping.open(met.id);
  const leaving = new AbortController();
  const left = assert.rejects(echo.once(leaving.signal), /gone/);
  const other = met.ping.ping(met.id);
  leaving.abort(new Error("gone"));
  await left;
  resolve();
  assert.ok((await other) > 0);
  echo.close();
});
