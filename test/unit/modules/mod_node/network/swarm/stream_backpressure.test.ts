import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Stream } from "@libp2p/interface";
import { allowBuffering, drained, pause, resume, widenWindow } from "#node/network/swarm/stream_backpressure.ts";
import { connectTo, startPeer } from "./support.ts";

const protocol = "/test/paced";
const mebibyte = 1024 * 1024;

/** Both ends of a stream between two nodes. */
async function streams(t: TestContext): Promise<{ readonly near: Stream; readonly far: Stream }> {
  const [a, b] = [await startPeer(), await startPeer()];
  t.after(() => Promise.all([a.stop(), b.stop()]));
  const { promise, resolve } = Promise.withResolvers<Stream>();
  await a.swarm.libp2p.handle(protocol, resolve);
  await connectTo(b, a);
  const far = await b.swarm.libp2p.dialProtocol(a.swarm.id, protocol);
  far.send(new Uint8Array(1));
  return { near: await promise, far };
}

/** Bytes that are taken, at most `most`, until none are for half a second. */
async function fill(stream: Stream, most: number): Promise<number> {
  let sent = 0;
  for (const piece = new Uint8Array(mebibyte / 4); sent < most; sent += piece.length) {
    if (stream.send(piece)) continue;
    const isTaken = await drained(stream, AbortSignal.timeout(500)).then(
      () => true,
      () => false,
    );
    if (!isTaken) break;
  }
  return sent;
}

test("a stream that waits holds its sender back, also when it is paused by what a resumption delivers", async (t) => {
  const { near, far } = await streams(t);
  allowBuffering(near);
  let got = 0;
  near.addEventListener("message", ({ data }) => {
    got += data.byteLength;
    pause(near);
  });
  let sent = 1 + (await fill(far, 64 * mebibyte));
  for (let turn = 0; turn < 3; turn += 1) {
    resume(near);
    sent += await fill(far, 64 * mebibyte);
    assert.equal(near.status, "open");
  }
  assert.ok(sent < 128 * mebibyte, `${sent} bytes were taken`);
  const over = new Promise((resolve) => near.addEventListener("end", resolve));
  near.addEventListener("message", () => queueMicrotask(() => resume(near)));
  resume(near);
  await far.close();
  await over;
  assert.ok(got >= sent, `${got} of ${sent} bytes`);
});

test("pausing and resuming what is over does nothing", async (t) => {
  const { near } = await streams(t);
  pause(near);
  pause(near);
  near.abort(new Error("gone"));
  resume(near);
  pause(near);
  assert.equal(near.status, "aborted");
});

test("over a wide stream much comes at once, and its peer is told of room seldom", async (t) => {
  const { near, far } = await streams(t);
  allowBuffering(near);
  widenWindow(near);
  const told = t.mock.method(near as Stream & { sendFrame(): unknown }, "sendFrame").mock;
  pause(near);
  const waiting = await fill(far, 64 * mebibyte);
  assert.ok(waiting >= mebibyte, `${waiting} bytes were taken`);
  const sent = 32 * mebibyte;
  const { promise: all, resolve: gotAll } = Promise.withResolvers<void>();
  let left = sent + waiting;
  near.addEventListener("message", ({ data }) => {
    left -= data.byteLength;
    if (left <= mebibyte / 4) gotAll();
  });
  resume(near);
  assert.equal(await fill(far, sent), sent);
  await all;
  assert.ok(told.callCount() <= (2 * sent) / mebibyte + 4, `told ${told.callCount()} times`);
});
