import assert from "node:assert/strict";
import dgram from "node:dgram";
import { resolve4 } from "node:dns/promises";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { LoopbackOnly } from "#test/support/loopback_only.ts";

// A name that cannot be resolved, in case the guard fails.
const outside = "nowhere.invalid";

test("guarded clients reach only this machine, and other attempts are reported", async () => {
  const server = createServer((_, response) => response.end("here"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const socket = dgram.createSocket("udp4");
  try {
    using guard = new LoopbackOnly();
    const { port } = server.address() as AddressInfo;
    for (const host of ["127.0.0.1", "localhost"]) {
      const response = await fetch(`http://${host}:${port}`, { headers: { connection: "close" } });
      assert.equal(await response.text(), "here");
    }
    guard.check();
    await assert.rejects(fetch(`http://${outside}`));
    assert.throws(() => resolve4(outside));
    assert.throws(() => socket.send("hello", 5353, outside));
    assert.deepEqual(guard.tried, [`connect ${outside}`, `resolve4 ${outside}`, `send ${outside}`]);
    assert.throws(() => guard.check(), /than this one: connect nowhere\.invalid, /);
  } finally {
    socket.close();
    server.close();
  }
});
