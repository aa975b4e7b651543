import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stream } from "@libp2p/interface";
import { peerIdFromString } from "@libp2p/peer-id";
import type { PingComponents } from "@libp2p/ping";
import { PingService, pingProtocol } from "#node/network/swarm/ping.ts";
import { startPeer, startStranger } from "./support.ts";

/** A peer that responds with `echo`, on one stream at a time. */
async function acquainted(echo: (stream: Stream) => Promise<void>) {
  const stranger = await startStranger();
  await stranger.unhandle(pingProtocol);
  await stranger.handle(pingProtocol, echo, { maxInboundStreams: 1 });
  const peer = await startPeer();
  const { ping } = peer.swarm;
  await peer.swarm.connect(stranger.peerId, stranger.getMultiaddrs());
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

test("several callers ping a peer that allows one stream", async () => {
  await using met = await acquainted(faithful);
  const echo = await met.ping.open(met.id);
  const times = await Promise.all([echo.ping(), met.ping.ping(met.id), met.ping.ping(met.id), echo.ping()]);
  assert.ok(
    times.every((time) => time > 0),
    String(times),
  );
  assert.equal(met.open(), 1);
  echo.close();
  assert.ok((await met.ping.ping(met.id)) > 0);
});

test("callers that ping a peer at the same time share a stream", async () => {
  await using met = await acquainted(faithful);
  const echoes = await Promise.all([1, 2, 3, 4].map(() => met.ping.open(met.id)));
  assert.equal(new Set(echoes).size, 1);
  const times = await Promise.all(echoes.map((echo) => echo.ping()));
  assert.ok(times.every((time) => time > 0));
  assert.equal(met.open(), 1);
  for (const echo of echoes) echo.close();
});

/** A service whose streams are opened by `open`. */
function opening(open: (signal: AbortSignal | undefined) => Promise<Stream>) {
  const connectionManager = {
    openStream: (_: unknown, __: unknown, options: { signal?: AbortSignal }) => open(options.signal),
  };
  return new PingService({ connectionManager } as unknown as PingComponents);
}

test("a caller that aborts does not close the stream of the others, and a waiting caller may abort", async () => {
  let requests = 0;
  const first = new AbortController();
  const waiting = new AbortController();
  const ping = opening((signal) => {
    requests += 1;
    return new Promise((_, reject) => {
      if (requests === 2) reject(new Error("cannot be reached"));
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  });
  const peer = peerIdFromString("12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5");
  const refused = [
    assert.rejects(ping.open(peer, { signal: first.signal }), /first left/),
    assert.rejects(ping.open(peer, { signal: waiting.signal }), /waiting left/),
    assert.rejects(ping.open(peer), /cannot be reached/),
    assert.rejects(ping.open(peer), /cannot be reached/),
  ];
  waiting.abort(new Error("waiting left"));
  await refused[1];
  assert.equal(requests, 1);
  first.abort(new Error("first left"));
  await Promise.all(refused);
  assert.equal(requests, 2);
});

test("a caller that aborts does not consume the echo of another", async () => {
  const { promise: release, resolve } = Promise.withResolvers<void>();
  await using met = await acquainted(async (stream) => {
    for await (const chunk of stream) {
      await release;
      stream.send(chunk);
    }
  });
  const echo = await met.ping.open(met.id);
  const leaving = new AbortController();
  const left = assert.rejects(echo.ping(leaving.signal), /gone/);
  const other = met.ping.ping(met.id);
  leaving.abort(new Error("gone"));
  await left;
  resolve();
  assert.ok((await other) > 0);
  echo.close();
});
