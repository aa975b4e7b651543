import assert from "node:assert/strict";
import { test } from "node:test";
import { allowBuffering, pause, resume } from "#node/network/swarm/stream_backpressure.ts";
import { fill, streamBetween } from "./support.ts";

const mebibyte = 1024 * 1024;

test("a paused stream slows its sender down, also if a listener pauses it while it resumes", async (t) => {
  const { near, far } = await streamBetween(t);
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

test("pausing and resuming a finished stream does nothing", async (t) => {
  const { near } = await streamBetween(t);
  pause(near);
  pause(near);
  near.abort(new Error("gone"));
  resume(near);
  pause(near);
  assert.equal(near.status, "aborted");
});
