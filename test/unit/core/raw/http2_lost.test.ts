import assert from "node:assert/strict";
import http2 from "node:http2";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Module } from "#core/types.ts";
import { frame, openFrames, requestBlock } from "#test/support/frames.ts";
import { startHost } from "#test/support/host.ts";

/** Starts a host whose connections may be idle only for a short time. */
async function start(seconds: number) {
  let server: Module["server"] | undefined;
  const host = await startHost({
    config: { http_idle_timeout: seconds },
    modules: {
      mod_late(module) {
        ({ server } = module);
        module.depends("http");
        module.provides("http", { route: { "GET /": () => wait(1000).then(() => "late") } });
      },
    },
  });
  return { host, connections: () => server?.status().connections };
}

test("the connection of a client that leaves while its requests are refused is closed", async (t) => {
  const { host, connections } = await start(0.2);
  t.after(() => host.stop());
  // A field of 3,900 bytes, and requests that refer to it eight thousand times: each is refused.
  const field = Buffer.concat([Buffer.from([0x40, 3, 0x78, 0x2d, 0x62, 127, 0xbd, 0x1d]), Buffer.alloc(3900, 97)]);
  const block = requestBlock("GET", "/late/");
  const bomb = Buffer.concat([block, Buffer.alloc(8000, 0xbe)]);
  for (let at = 0; at < 5; at += 1) {
    const socket = await openFrames(host.https);
    socket.write(frame("headers", 5, 1, Buffer.concat([block, field])));
    for (let stream = 3; stream < 400; stream += 2) socket.write(frame("headers", 5, stream, bomb));
    await wait(5);
    socket.destroy();
  }
  for (let times = 0; times < 400 && connections() !== 0; times += 1) await wait(25);
  assert.equal(connections(), 0);
});

test("a client that waits for a response longer than a connection may be idle gets it", async (t) => {
  const { host } = await start(0.2);
  t.after(() => host.stop());
  const session = http2.connect(`https://127.0.0.1:${host.https}`, { rejectUnauthorized: false });
  t.after(() => session.destroy());
  const stream = session.request({ ":path": "/late/" });
  const pieces = await Array.fromAsync(stream);
  assert.equal(Buffer.concat(pieces).toString(), "late");
});
