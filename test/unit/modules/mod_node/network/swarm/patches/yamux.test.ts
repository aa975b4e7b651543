import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stream } from "@libp2p/interface";
import { PatchNotices } from "#node/network/swarm/patches/notices.ts";
import { widenWindow } from "#node/network/swarm/patches/yamux/receive_window.ts";
import { allowBuffering, pause, resume } from "#node/network/swarm/stream_backpressure.ts";
import { until } from "../../bitswap/support.ts";
import { fill, streamBetween } from "../support.ts";

const mebibyte = 1024 * 1024;

test("a widened stream receives much at once, and sends few window updates", async (t) => {
  const { near, far } = await streamBetween(t);
  allowBuffering(near);
  const notices: string[] = [];
  widenWindow(near, new PatchNotices((sentence) => notices.push(sentence)));
  assert.deepEqual(notices, []);
  const updates = t.mock.method(near as Stream & { sendFrame(): unknown }, "sendFrame").mock;
  pause(near);
  const waiting = mebibyte;
  for (let left = waiting; left > 0; left -= mebibyte / 4) far.send(new Uint8Array(mebibyte / 4));
  await until(() => near.readBufferLength >= waiting, "all data has arrived, although nobody reads it");
  const sent = 32 * mebibyte;
  const { promise: all, resolve: gotAll } = Promise.withResolvers<void>();
  let left = sent + waiting;
  near.addEventListener("message", ({ data }) => {
    left -= data.byteLength;
    if (left <= mebibyte / 4) gotAll();
  });
  resume(near);
  assert.equal(await fill(far, sent, 60_000), sent);
  await all;
  assert.ok(updates.callCount() <= (2 * sent) / mebibyte + 4, `${updates.callCount()} updates`);
});
