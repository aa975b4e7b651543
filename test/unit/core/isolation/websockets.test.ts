/** Websockets of isolated and sandboxed modules, whose bytes the host only carries. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestHost } from "#core/testing/index.ts";
import { runModes } from "#test/support/run_modes.ts";
import { pluginHost } from "../module/support.ts";

const MESSAGE_BYTES = 64 * 1024;
const MESSAGES = 1000;

const files = {
  "mod_shop.js": `
export const depends = ["http"];
async function* endless() { for (;;) { yield "more"; await new Promise((resolve) => setTimeout(resolve, 20)); } }
export default (module) => module.provides("http", { route: {
  GET: () => "shop",
  "WS /flood": async (event) => {
    const socket = event.accept();
    for (let count = 0; count < ${MESSAGES}; count += 1) await socket.send(Buffer.alloc(${MESSAGE_BYTES}));
  },
  "WS /stream": () => endless(),
} });`,
};

/** Requests a websocket. Nothing is read of the response. */
async function handshake({ url }: TestHost, path: string): Promise<Socket> {
  const { port } = new URL(url("/"));
  const client = connect(Number(port), "127.0.0.1").on("error", () => undefined);
  await once(client, "connect");
  const key = Buffer.alloc(16).toString("base64");
  client.write(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  return client;
}

async function statusOf(client: Socket): Promise<number> {
  const [head] = (await once(client, "data")) as [Buffer];
  return Number(head.toString("latin1").split(" ")[1]);
}

for (const { mode, title, skip } of runModes) {
  describe(`websockets of ${title}`, { skip, timeout: 120_000 }, () => {
    test("disconnect a client that does not read", async (t) => {
      const host = await pluginHost(t, files, {
        http_progress_timeout: 1,
        unload_grace: 0.1,
        modules: { shop: { run: mode } },
      });
      const client = await handshake(host, "/shop/flood");
      t.after(() => client.destroy());
      await sleep(4000);
      let received = 0;
      client.on("data", (piece) => {
        received += piece.length;
      });
      await once(client, "close");
      assert.ok(received < MESSAGES * MESSAGE_BYTES, `all ${received} bytes arrived`);
    });

    test("count as requests as long as the response to the handshake is an ordinary one", async (t) => {
      const host = await pluginHost(t, files, {
        unload_grace: 0.1,
        modules: { shop: { run: mode, limits: { requests: 2 } } },
      });
      const streams = await Promise.all([handshake(host, "/shop/stream"), handshake(host, "/shop/stream")]);
      t.after(() => streams.forEach((stream) => void stream.destroy()));
      assert.deepEqual(await Promise.all(streams.map(statusOf)), [200, 200]);
      assert.equal((await host.inject("/shop")).status, 503);
      for (const stream of streams) stream.destroy();
      for (let status = 503; status !== 200; status = (await host.inject("/shop")).status) await sleep(20);
      for (let count = 0; count < 3; count += 1) {
        const open = await handshake(host, "/shop/flood");
        t.after(() => open.destroy());
        assert.equal(await statusOf(open), 101);
      }
    });
  });
}
