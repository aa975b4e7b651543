import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import type { WebSocketEvent } from "#core/types.ts";
import { TestService } from "#test/support/service.ts";
import { clientFrame, handshake, openRaw } from "#test/support/websocket.ts";

test("messages of many clients are processed in portions, between which other work runs", async () => {
  const clients = 40;
  const each = 10_000;
  let accepted = 0;
  let inTurn = 0;
  let most = 0;
  let all = 0;
  // Another thread sends, so that much has arrived when this one reads.
  const still = new Int32Array(new SharedArrayBuffer(4));
  const done = Promise.withResolvers<void>();
  const route = {
    "WS /": async (event: WebSocketEvent) => {
      const socket = event.accept();
      accepted += 1;
      if (accepted === clients) setTimeout(() => Atomics.wait(still, 0, 0, 300), 20);
      for await (const _ of socket) {
        inTurn += 1;
        all += 1;
        if (all === clients * each) done.resolve();
      }
    },
  };
  await using service = await TestService.start({ route });
  const flood = Buffer.concat(Array.from({ length: each }, () => clientFrame("binary", "a")));
  const sender = new Worker(
    `const { workerData: { port, clients, head, flood } } = require("node:worker_threads");
    const { connect } = require("node:net");
    for (let at = 0; at < clients; at += 1) {
      const socket = connect(port, "127.0.0.1", () => socket.write(head));
      socket.once("data", () => setTimeout(() => socket.write(flood), 100));
    }`,
    { eval: true, workerData: { port: service.port, clients, head: handshake("/app/"), flood } },
  );
  const turn = () => {
    most = Math.max(most, inTurn);
    inTurn = 0;
    if (all < clients * each) setImmediate(turn);
  };
  setImmediate(turn);
  await done.promise;
  await sender.terminate();
  assert.ok(most < (clients * each) / 4, `${most} of ${all} messages were taken in one turn`);
});

test("delayed messages stay in order, and the end of a connection comes after them", async () => {
  const got: string[] = [];
  const closed = Promise.withResolvers<number>();
  const route = {
    "WS /": async (event: WebSocketEvent) => {
      const socket = event.accept();
      for await (const message of socket) {
        // Some messages block the event loop for longer than messages may in one turn.
        const until = performance.now() + (got.length % 100 === 0 ? 15 : 0);
        while (performance.now() < until);
        got.push(String(message));
      }
      closed.resolve((await socket.closed).code);
    },
  };
  await using service = await TestService.start({ route });
  using connection = await openRaw(service.port, "/app/");
  const texts = Array.from({ length: 1000 }, (_, at) => `${at}`);
  connection.write(Buffer.concat(texts.map((text) => clientFrame("text", text))));
  connection.write(clientFrame("close", Buffer.of(3, 232)));
  assert.equal(await closed.promise, 1000);
  assert.deepEqual(got, texts);
});
