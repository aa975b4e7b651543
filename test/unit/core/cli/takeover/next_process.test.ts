/** The channel to the next server process, for the process that hands over. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { NextProcess } from "#core/cli/takeover/next_process.ts";

test("a next process that is killed before it acknowledges the first of several ports fails the takeover at once", async (t) => {
  const stuck = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)";
  const next = new NextProcess({ command: [process.execPath, "-e", stuck] }, process.env);
  const servers = [createServer(), createServer(), createServer()];
  t.after(() => servers.map((server) => server.close()));
  for (const server of servers) await once(server.listen(0, "127.0.0.1"), "listening");
  const ports = servers.map((server) => ({ name: "http", requested: undefined, server, waiting: [] }));
  const begun = next.begin({ ports, states: [] });
  begun.catch(() => undefined);
  // Node has sent the first one, and queues the others.
  await sleep(20);
  process.kill(next.pid as number, "SIGKILL");
  await assert.rejects(begun, /it has ended with SIGKILL/);
  await next.end();
});
