import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stream } from "@libp2p/interface";
import type { PeerId } from "#node/formats/peer_id.ts";
import { Bandwidth, Meter } from "#node/network/swarm/bandwidth.ts";
import { connectTo, startPeer } from "./support.ts";

const weight = 1 - Math.exp(-1);

test("a rate is the weighted average of whole seconds", () => {
  let now = 0;
  const meter = new Meter(() => now);
  meter.add(1000);
  assert.equal(meter.rate, 0);
  now = 999;
  assert.equal(meter.rate, 0);
  now = 1000;
  assert.equal(meter.rate, 1000);
  meter.add(3000);
  now = 2000;
  const second = 1000 + weight * (3000 - 1000);
  assert.ok(Math.abs(meter.rate - second) < 1e-9);
  now = 5000;
  assert.ok(Math.abs(meter.rate - second * (1 - weight) ** 3) < 1e-9);
  now = 100_000;
  assert.equal(meter.rate, 0);
  assert.equal(meter.total, 4000);
});

test("one side counts as sent what the other counts as received, by peer and by protocol", async () => {
  await using a = await startPeer();
  await using b = await startPeer();
  const protocol = "/test/count/1.0.0";
  const arrived = Promise.withResolvers<void>();
  await b.swarm.libp2p.handle(protocol, async (stream) => {
    let got = 0;
    for await (const chunk of stream) got += chunk.byteLength;
    assert.equal(got, 3000);
    arrived.resolve();
    await stream.close();
  });
  const connection = await connectTo(a, b);
  const stream = await connection.newStream(protocol);
  stream.send(new Uint8Array(1000));
  stream.send(new Uint8Array(2000));
  await stream.close();
  await arrived.promise;
  const sent = a.swarm.bandwidth;
  const got = b.swarm.bandwidth;
  assert.deepEqual([sent?.protocol(protocol).TotalOut, sent?.protocol(protocol).TotalIn], [3000, 0]);
  assert.deepEqual([got?.protocol(protocol).TotalIn, got?.protocol(protocol).TotalOut], [3000, 0]);
  assert.ok((sent?.peer(b.swarm.id).TotalOut ?? 0) >= 3000);
  assert.ok((sent?.total().TotalOut ?? 0) >= 3000);
  assert.ok((got?.peer(a.swarm.id).TotalIn ?? 0) >= 3000);
  assert.equal(sent?.peer(a.swarm.id).TotalOut, 0);
  assert.equal(sent?.protocol("/none").TotalIn, 0);
});

test("a connected peer retains its counters however many others connect and disconnect", () => {
  const events = new EventTarget();
  const bandwidth = new Bandwidth(events as ConstructorParameters<typeof Bandwidth>[0]);
  const meet = (name: string) => {
    const stream = Object.assign(new EventTarget(), { protocol: "/test", send: () => true }) as unknown as Stream;
    const remotePeer = { toString: () => name } as PeerId;
    const connection = { remotePeer, streams: [stream] };
    const deliver = (type: string) => events.dispatchEvent(new CustomEvent(type, { detail: connection }));
    deliver("connection:open");
    bandwidth.trackProtocolStream(stream);
    stream.send(new Uint8Array(10));
    return { stream, sent: () => bandwidth.peer(remotePeer).TotalOut, leave: () => deliver("connection:close") };
  };
  const long = meet("long");
  const short = meet("short");
  short.leave();
  for (let at = 0; at < 5000; at += 1) meet(`${at}`).leave();
  long.stream.send(new Uint8Array(1));
  assert.deepEqual([long.sent(), short.sent()], [11, 0]);
  const again = meet("long");
  again.leave();
  assert.equal(again.sent(), 21);
  for (let at = 0; at < 5000; at += 1) meet(`${at}`).leave();
  assert.equal(long.sent(), 21);
  long.leave();
  for (let at = 0; at < 5000; at += 1) meet(`${at}`).leave();
  assert.equal(long.sent(), 0);
});

test("nothing is counted if the configuration disables it", async () => {
  await using a = await startPeer({ config: { "Swarm.DisableBandwidthMetrics": true } });
  assert.equal(a.swarm.bandwidth, undefined);
});
