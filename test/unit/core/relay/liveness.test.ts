/** Pings to the other end of a channel. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Channel, type MessageEndpoint } from "#core/relay/channel.ts";
import { watchLiveness } from "#core/relay/liveness.ts";
import { eventually } from "#test/support/eventually.ts";

/** A channel whose other end responds while the test allows it. */
function channelWith(other: { isSilent: boolean }): Channel {
  let receive: (message: unknown) => void = () => undefined;
  const port: MessageEndpoint = {
    postMessage: (message) => {
      const { id } = message as { id: number };
      if (!other.isSilent) setImmediate(() => receive({ reply: id, value: 42 }));
    },
    on: (_event, listener) => {
      receive = listener;
    },
  };
  return new Channel(port, {});
}

test("an end that responds is alive; one that stops responding is reported as silent until the watch ends", async () => {
  const other = { isSilent: false };
  const alive: unknown[] = [];
  const silent: number[] = [];
  const end = watchLiveness(channelWith(other), 0.05, {
    alive: (value) => alive.push(value),
    silent: (seconds) => silent.push(seconds),
  });
  await eventually("it is alive", () => alive.length > 2, { every: 5 });
  assert.deepEqual(new Set(alive), new Set([42]));
  other.isSilent = true;
  await eventually("it is silent", () => silent.length > 0, { every: 5 });
  assert.ok((silent[0] as number) > 0.05);
  end();
  const before = silent.length;
  await sleep(60);
  assert.equal(silent.length, before);
});

test("time during which this thread itself is blocked does not count as silence of the other end", () => {
  const silent: number[] = [];
  const end = watchLiveness(channelWith({ isSilent: false }), 0.04, { silent: (seconds) => silent.push(seconds) });
  for (const until = performance.now() + 200; performance.now() < until; );
  return sleep(30).then(() => {
    end();
    assert.deepEqual(silent, []);
  });
});
