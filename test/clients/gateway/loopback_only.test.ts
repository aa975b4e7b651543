import assert from "node:assert/strict";
import dgram from "node:dgram";
import { resolve4 } from "node:dns/promises";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { LoopbackOnly } from "#test/support/loopback_only.ts";

// Of names that nobody has nothing comes, should the guard fail.
const outside = "nowhere.invalid";

test("while clients are guarded they reach this machine alone, and what they try besides is told", async () => {
  const server = createServer((_, answer) => answer.end("here"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const socket = dgram.createSocket("udp4");
  try {
    using guard = new LoopbackOnly();
    const { port } = server.address() as AddressInfo;
    for (const host of ["127.0.0.1", "localhost"]) {
      const answer = await fetch(`http://${host}:${port}`, { headers: { connection: "close" } });
      assert.equal(await answer.text(), "here");
    }
    guard.check();
    await assert.rejects(fetch(`http://${outside}`));
    assert.throws(() => resolve4(outside));
    assert.throws(() => socket.send("hello", 5353, outside));
    assert.deepEqual(guard.tried, [`connect ${outside}`, `resolve4 ${outside}`, `send ${outside}`]);
    assert.throws(() => guard.check(), /was asked: connect nowhere\.invalid, /);
  } finally {
    socket.close();
    server.close();
  }
});
