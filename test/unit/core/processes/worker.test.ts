/** One process of several, with calls of its supervisor. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "#core/processes/worker.ts";
import type { IpcPeer } from "#core/relay/ipc_channel.ts";

function workerWith() {
  let receive: (message: unknown, handle?: unknown) => void = () => undefined;
  const sent: unknown[] = [];
  const peer: IpcPeer = {
    connected: true,
    send: (message) => sent.push(message) > 0,
    on: (_event, listener) => {
      receive = listener;
    },
  };
  return { worker: new Worker(2, peer), sent, receive: (message: unknown) => receive(message) };
}

test("a process that is requested to stop during its start stops as soon as it can", async () => {
  const { worker, receive } = workerWith();
  receive({ call: "stop", id: undefined, values: ["SIGTERM"] });
  const stopped: unknown[] = [];
  const program = { host: () => assert.fail(), reload: async () => undefined, reopen: async () => undefined };
  worker.attach({ ...program, stop: (signal) => stopped.push(signal) });
  assert.deepEqual(stopped, []);
  await new Promise(setImmediate);
  assert.deepEqual(stopped, ["SIGTERM"]);
});

test("a process responds to pings from its start on, and rejects unknown calls", async () => {
  const { sent, receive } = workerWith();
  receive({ call: "ping", id: 1, values: [] });
  receive({ call: "nothing", id: 2, values: [] });
  await new Promise(setImmediate);
  const replies = sent as { reply?: number; error?: { message: string } }[];
  const replyTo = (id: number) => replies.find(({ reply }) => reply === id);
  assert.deepEqual(replyTo(1), { reply: 1, value: undefined });
  assert.equal(replyTo(2)?.error?.message, "This end has no function nothing");
});
